// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/io/model_table.hpp"
#include "scalewise/io/table_parts.hpp"

namespace scalewise::detail {

/// Encoders, with the head that they are trained with; model_classes.hpp says which class.
/// Source:   transformers, models/<type>/modeling_<type>.py or modular_<type>.py (deit: 2140158; dinov2: 0872924; modernbert: 001f85b;
///           deberta_v2: 0038a3c; distilbert: 00b326f).
inline constexpr ModelTable encoder_tables[] = {
    {"bert",
     {TablePart::bert_sizes, R"(
let P = max_position_embeddings
embedding bert.embeddings.word_embeddings V n
embedding bert.embeddings.position_embeddings P n
embedding bert.embeddings.token_type_embeddings types n
norm bert.embeddings.LayerNorm n +
layers bert.encoder.layer
)",
      TablePart::bert_attention, TablePart::bert_outputs, R"(
end
linear cls.predictions.transform.dense n n +
norm cls.predictions.transform.LayerNorm n +
linear cls.predictions.decoder n V tied bert.embeddings.word_embeddings.weight
bias:o cls.predictions.bias V
)"}},
    {"roberta",
     {TablePart::bert_sizes, TablePart::roberta_stem, TablePart::bert_attention,
      TablePart::bert_outputs, TablePart::roberta_head}},
    {"xlm-roberta",
     {TablePart::bert_sizes, TablePart::roberta_stem, TablePart::bert_attention,
      TablePart::bert_outputs, TablePart::roberta_head}},
    {"camembert",
     {TablePart::bert_sizes, TablePart::roberta_stem, TablePart::bert_attention,
      TablePart::bert_outputs, TablePart::roberta_head}},
    {"electra",
     {TablePart::bert_sizes, R"(
grows e = embedding_size
embedding electra.embeddings.word_embeddings V e
embedding electra.embeddings.position_embeddings max_position_embeddings e
embedding electra.embeddings.token_type_embeddings types e
norm electra.embeddings.LayerNorm e +
linear electra.embeddings_project e n + if not e=n
layers electra.encoder.layer
)",
      TablePart::bert_attention, TablePart::bert_outputs, R"(
end
linear discriminator_predictions.dense n n +
linear discriminator_predictions.dense_prediction n 1 +
)"}},
    {"distilbert", {R"(
width n = dim or hidden_size
depth L = n_layers or num_hidden_layers
grows H = n_heads or num_attention_heads
let C = n/H
grows F = hidden_dim
let V = vocab_size
let tie = tie_word_embeddings or 1
skip activation sinusoidal_pos_embds tie_weights_
embedding distilbert.embeddings.word_embeddings V n
embedding distilbert.embeddings.position_embeddings max_position_embeddings n if not sinusoidal_pos_embds
norm distilbert.embeddings.LayerNorm n +
layers distilbert.transformer.layer
linear attention.q_lin n n +
linear attention.k_lin n n +
linear attention.v_lin n n +
linear attention.out_lin n n +
norm sa_layer_norm n +
linear ffn.lin1 n F +
linear ffn.lin2 F n +
norm output_layer_norm n +
end
linear vocab_transform n n +
norm vocab_layer_norm n +
linear vocab_projector n V + tied distilbert.embeddings.word_embeddings.weight
)"}},
    {"modernbert", {R"(
width n = hidden_size
depth L = num_hidden_layers
grows H = num_attention_heads
let C = n/H
grows F = intermediate_size
let V = vocab_size
let tie = tie_word_embeddings or 1
let decoder = decoder_bias or 1
skip classifier_activation classifier_pooling decoder_bias global_attn_every_n_layers layer_norm_eps local_attention
skip norm_eps global_rope_theta local_rope_theta deterministic_flash_attn sparse_prediction sparse_pred_ignore_index
skip repad_logits_with_grad reference_compile initializer_cutoff_factor position_embedding_type
embedding model.embeddings.tok_embeddings V n
norm model.embeddings.norm n +norm_bias
layers model.layers
norm attn_norm n +norm_bias if l>0
linear attn.Wqkv n 3*n +attention_bias
linear attn.Wo n n +attention_bias
norm mlp_norm n +norm_bias
linear mlp.Wi n 2*F +mlp_bias
linear mlp.Wo F n +mlp_bias
end
norm model.final_norm n +norm_bias
linear head.dense n n +classifier_bias
norm head.norm n +norm_bias
linear decoder n V +decoder tied model.embeddings.tok_embeddings.weight
)"}},
    {"deberta-v2",
     {TablePart::bert_sizes, R"(
let C = attention_head_size or n/H
grows e = embedding_size or n
let P = max_position_embeddings
let span = max_relative_positions or -1 P
let buckets = position_buckets or -1 span
let positions = position_biased_input or 1
let types = type_vocab_size or 0
let kernel = conv_kernel_size or 0
word normed = norm_rel_ebd layer_norm | none missing
only conv_groups 1
needs relative_attention true
needs share_att_key true
skip pos_att_type conv_act legacy position_buckets max_relative_positions
embedding deberta.embeddings.word_embeddings V e
embedding deberta.embeddings.position_embeddings P e if positions
embedding deberta.embeddings.token_type_embeddings types e if types>0
linear deberta.embeddings.embed_proj e n if not e=n
norm deberta.embeddings.LayerNorm n +
layers deberta.encoder.layer
linear attention.self.query_proj n H*C +
linear attention.self.key_proj n H*C +
linear attention.self.value_proj n H*C +
)",
      TablePart::bert_outputs, R"(
end
embedding deberta.encoder.rel_embeddings 2*buckets n
norm deberta.encoder.LayerNorm n + if normed
linear:oik deberta.encoder.conv.conv.weight n n kernel if kernel>0
bias:o deberta.encoder.conv.conv.bias n if kernel>0
norm deberta.encoder.conv.LayerNorm n + if kernel>0
)"}},
    {"dinov2", {TablePart::image_sizes, R"(
let patch = 14
grows F = mlp_ratio*n
let mask = use_mask_token or 1
only use_swiglu_ffn false
skip layerscale_value out_features out_indices stage_names reshape_hidden_states apply_layernorm
embedding:iio embeddings.cls_token 1 1 n
embedding:io embeddings.mask_token 1 n if mask
embedding:iio embeddings.position_embeddings 1 patches+1 n
linear:oikk embeddings.patch_embeddings.projection.weight n channels patch_height patch_width
bias:o embeddings.patch_embeddings.projection.bias n
layers encoder.layer
norm norm1 n +
linear attention.q_proj n n +qkv
linear attention.k_proj n n +qkv
linear attention.v_proj n n +qkv
linear attention.o_proj n n +
gain:o layer_scale1.lambda1 n
norm norm2 n +
linear mlp.fc1 n F +
linear mlp.fc2 F n +
gain:o layer_scale2.lambda1 n
end
norm layernorm n +
)"}},
    {"deit",
     {TablePart::image_sizes, R"(
grows F = intermediate_size
embedding:iio deit.embeddings.cls_token 1 1 n
embedding:iio deit.embeddings.distillation_token 1 1 n
embedding:iio deit.embeddings.position_embeddings 1 patches+2 n
linear:oikk deit.embeddings.patch_embeddings.projection.weight n channels patch_height patch_width
bias:o deit.embeddings.patch_embeddings.projection.bias n
layers deit.layers
)",
      TablePart::vit_layer, R"(
end
norm deit.layernorm n +
linear classifier n classes +
)"}},
    {"vit",
     {TablePart::image_sizes, R"(
grows F = intermediate_size
embedding:iio vit.embeddings.cls_token 1 1 n
embedding:iio vit.embeddings.position_embeddings 1 patches+1 n
linear:oikk vit.embeddings.patch_embeddings.projection.weight n channels patch_height patch_width
bias:o vit.embeddings.patch_embeddings.projection.bias n
layers vit.layers
)",
      TablePart::vit_layer, R"(
end
norm vit.layernorm n +
linear classifier n classes +
)"}},
};

}  // namespace scalewise::detail
