import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const script = path.join(import.meta.dirname, '../../deploy/linux/holdfast');
const isRoot = process.geteuid?.() === 0;
/** A user of this machine who owns nothing, unless the tests are one. */
const user = isRoot ? { uid: 65_534, gid: 65_534 } : {};

let folder: string;
let command: string;

// /usr/bin/holdfast with another program, and settings that this user may not read.
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-command-'));
  chmodSync(folder, 0o755);
  const program = path.join(folder, 'program');
  command = path.join(folder, 'holdfast');
  const text = readFileSync(script, 'utf8')
    .replace('program=/usr/lib/holdfast/bin/holdfast', `program=${program}`)
    .replace('file=/etc/holdfast/holdfast.env', `file=${path.join(folder, 'settings')}`);
  writeFileSync(program, '#!/bin/sh\necho "$HOME: $*"\n');
  writeFileSync(command, text);
  for (const file of [program, command]) chmodSync(file, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (as: object, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(command, args, {
    ...as,
    env: { PATH: process.env['PATH'], HOME: '/home/ada' },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
};

test.each(['apply', 'approve', 'completion', 'drain', 'export-config', 'plan', 'schema', 'top', 'wait'])(
  'holdfast %s, which only calls the API, runs with the login of the user',
  (name) => {
    const result = { status: 0, stdout: `/home/ada: ${name} -f acme.yaml\n`, stderr: '' };
    expect(run(user, name, '-f', 'acme.yaml')).toEqual(result);
    if (isRoot) expect(run({}, name, '-f', 'acme.yaml')).toEqual(result);
  },
);

test('a command that needs the settings says who may run it', () => {
  expect(run(user, 'admin', 'list')).toEqual({
    status: 1,
    stdout: '',
    stderr: expect.stringContaining('run it as root: sudo holdfast admin list'),
  });
});
