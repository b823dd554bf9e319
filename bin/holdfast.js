#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const built = path.join(root, 'dist', 'holdfast.js');
const entry = existsSync(built) ? built : path.join(root, 'src', 'holdfast.ts');

if (Number(process.versions.node.split('.')[0]) >= 24) {
  await import(entry);
} else {
  // Installed beside us by npm: an older Node cannot run the server.
  const node = path.join(root, 'node_modules', '.bin', 'node');
  const child = spawn(node, [entry, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}
