/** The example of the README prints what its comments say. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

test("the example of the README", () => {
  const readme = readFileSync(join(process.env.ZT_ROOT, "js/README.md"), "utf8");
  const [, example] = readme.match(/```js\n(.*?)```/s);
  const program = join(import.meta.dirname, "example.js");
  writeFileSync(program, example);
  const cwd = join(process.env.ZT_ROOT, "conformance/data");
  const printed = execFileSync(process.execPath, [program], { cwd, encoding: "utf8" });
  const promised = [...example.matchAll(/console\.log\(.*?\); \/\/ (.*)$/gm)].map(([, text]) => text);
  assert.deepEqual(printed.trimEnd().split("\n"), promised);
});
