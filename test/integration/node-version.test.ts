import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const root = path.join(import.meta.dirname, '../..');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-node-'));
  for (const name of ['path', 'program/dist']) mkdirSync(path.join(folder, name), { recursive: true });
  cpSync(path.join(root, 'bin'), path.join(folder, 'program/bin'), { recursive: true });
  writeFileSync(path.join(folder, 'program/package.json'), '{"type":"module"}');
  writeFileSync(path.join(folder, 'program/dist/main.js'), 'console.log("node", process.versions.node);');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Puts a Node of this version on the PATH. */
function useNode(version: string): void {
  const preload = path.join(folder, 'version.cjs');
  writeFileSync(
    preload,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`,
  );
  const node = path.join(folder, 'path/node');
  writeFileSync(node, `#!/bin/sh\nexec '${process.execPath}' --require '${preload}' "$@"\n`);
  chmodSync(node, 0o755);
}

const run = (file: string, ...args: string[]) => {
  const env = { PATH: `${path.join(folder, 'path')}:/usr/bin:/bin`, HOME: folder };
  const { status, stdout, stderr } = spawnSync(file, args, { env, encoding: 'utf8' });
  return { status, stdout, stderr };
};

// tls.setDefaultCACertificates, which HOLDFAST_CA_FILE needs, came with 24.5.
test.each(['22.19.0', '24.0.0', '24.4.1'])('Node %s on the PATH is too old', (version) => {
  useNode(version);
  const refused = { status: 1, stdout: '', stderr: expect.stringContaining('Node 24.5 or newer is required') };
  expect(run(path.join(folder, 'program/bin/node'), '--version')).toEqual(refused);
  // With it, the launcher looks for the Node that npm has installed.
  expect(run(path.join(folder, 'path/node'), path.join(folder, 'program/bin/holdfast.js'))).toEqual(refused);
});

test.each(['24.5.0', '24.21.0', '25.0.0'])('Node %s on the PATH runs the program', (version) => {
  useNode(version);
  expect(run(path.join(folder, 'program/bin/node'), '-p', '1')).toMatchObject({ status: 0, stdout: '1\n' });
  expect(run(path.join(folder, 'path/node'), path.join(folder, 'program/bin/holdfast.js'))).toMatchObject({
    status: 0,
    stdout: `node ${version}\n`,
  });
});
