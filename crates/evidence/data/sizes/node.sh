#!/bin/sh
# What: a Node service, 150,000 records of JSON parsed, indexed and asked for
# Debian: nodejs
set -e
case $1 in
prepare)
    node -e '
const file = require("fs").openSync("records", "w");
for (let i = 0; i < 150000; i++)
  require("fs").writeSync(file, JSON.stringify({ id: i, name: "n" + (i * 7919 % 1000003), tags: ["a" + i % 97, "b" + i % 89] }) + "\n");'
    ;;
run)
    node -e '
const index = new Map();
for (let round = 0; round < 3; round++)
  for (const line of require("fs").readFileSync("records", "utf8").split("\n"))
    if (line) { const record = JSON.parse(line); index.set(record.name + round, record); }
let found = 0;
for (let i = 0; i < 2000000; i++) found += index.has("n" + (i * 7919 % 1000003) + i % 3) ? 1 : 0;
if (!found) process.exit(1);'
    ;;
esac
