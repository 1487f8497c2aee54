// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// node assemble.js FOLDER PLAN_JS
// Writes FOLDER/index.html, with the style and all scripts inside, so that the content security policy can
// name each by its hash: browsers check no hash of a file beside a page that is opened without a server.
"use strict";

const {createHash} = require("crypto");
const {readFileSync, writeFileSync} = require("fs");
const path = require("path");

const [folder, plan] = process.argv.slice(2);
const hashes = {script: [], style: []};

function inside(tag, name) {
  const text = "\n" + readFileSync(name === "plan.js" ? plan : path.join(__dirname, name), "utf8");
  if (/<!--|<\/?(script|style)|\r/i.test(text)) throw new Error(`${name} cannot stand inside a page`);
  hashes[tag].push(`'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  return `<${tag}>${text}</${tag}>`;
}

/// Replaces what has to be there.
function replaced(text, what, by) {
  if (!text.match(what)) throw new Error(`index.html has no ${what}`);
  return text.replace(what, by);
}

let page = readFileSync(path.join(__dirname, "index.html"), "utf8");
page = replaced(page, /<link rel="stylesheet" href="(.*?)">/g, (_, name) => inside("style", name));
page = replaced(page, /<script src="(.*?)"><\/script>/g, (_, name) => inside("script", name));
page = replaced(page, "script-src ", () => `script-src ${hashes.script.join(" ")} `);
page = replaced(page, "style-src;", () => `style-src ${hashes.style.join(" ")};`);
writeFileSync(path.join(folder, "index.html"), page);
