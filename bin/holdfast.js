#!/usr/bin/env -S node --max-semi-space-size=2
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
// A checkout runs its sources; the image has only what was built of them.
const source = path.join(root, 'src', 'holdfast.ts');
const entry = existsSync(source) ? source : path.join(root, 'dist', 'holdfast.js');

if (Number(process.versions.node.split('.')[0]) >= 24) {
  // Halves the time that later starts spend on reading code.
  module.enableCompileCache();
  await import(entry);
} else {
  // Installed beside us by npm: an older Node cannot run the server.
  const node = path.join(root, 'node_modules', '.bin', 'node');
  const child = spawn(node, [...process.execArgv, entry, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}
