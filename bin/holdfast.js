#!/usr/bin/env -S node --max-semi-space-size=2 --heap-growing-percent=50
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { enableCompileCache } from './compile-cache.js';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
// A checkout runs its sources; packages and the image contain only the build.
const source = path.join(root, 'src', 'main.ts');
const entry = existsSync(source) ? source : path.join(root, 'dist', 'main.js');

// `npx holdfast`, to try it.
if (process.env.npm_lifecycle_event === 'npx' && process.argv.length === 2) process.argv.push('server');

const [major, minor] = process.versions.node.split('.').map(Number);
// HOLDFAST_CA_FILE needs 24.5.
if (major * 100 + minor >= 2405) {
  enableCompileCache();
  // `npm start` in a checkout; the server does not wait for it.
  if (process.env.npm_lifecycle_event === 'start' && entry === source) buildWeb();
  await import(entry);
} else {
  // This Node is too old for the server; use the one that npm has installed with us.
  const args = [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(path.join(root, 'bin', 'node'), args, { stdio: 'inherit' });
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}

/** Builds the web UI in the background if it is missing or older than its sources. */
function buildWeb() {
  const script = path.join(root, 'scripts', 'build-web.ts');
  if (!existsSync(script)) return;
  const child = spawn(process.execPath, [script, '--if-stale'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  child.on('error', () => {});
  child.unref();
}
