import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { checkDataDir, checkFiles, withIdsOf } from './setup-checks.ts';

const nobody = { uid: 65_534, gid: 65_534, groups: [] };
const isRoot = process.geteuid?.() === 0;
if (!isRoot) process.stderr.write('Tests with the ids of other users are skipped: only root can take them.\n');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-setup-'));
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, mode: number): string {
  const made = path.join(folder, name);
  writeFileSync(made, 'x');
  chmodSync(made, mode);
  return made;
}

describe('a file that the settings name', () => {
  const names = ['HOLDFAST_CA_FILE', 'HOLDFAST_VAULT_TOKEN_FILE', 'HOLDFAST_BOOTSTRAP', 'HOLDFAST_OIDC_GROUPS_FILE'];

  (isRoot ? test : test.skip)('is refused if the user of the service cannot read it', () => {
    const secret = file('secret.pem', 0o600);
    for (const name of names)
      expect(() => checkFiles({ [name]: secret }, nobody, false)).toThrow(`  ${name}: ${secret}`);
    for (const name of ['HOLDFAST_DATABASE_URL', 'HOLDFAST_DATABASE_REPLICA_URL', 'HOLDFAST_REDIS_URL'])
      for (const part of ['sslkey', 'sslcert', 'sslrootcert'])
        expect(() => checkFiles({ [name]: `x://u:hunter2@h/d?${part}=${secret}` }, nobody, false)).toThrow(
          `  ${name}: ${part}: ${secret} cannot be read by the user of the service`,
        );
  });

  (isRoot ? test : test.skip)('is accepted if another group of that user may read it, or write to the folder', () => {
    const shared = file('shared.pem', 0o640);
    for (const each of [shared, folder]) chownSync(each, 0, 4711);
    chmodSync(folder, 0o770);
    const check = (groups: number[]) => {
      checkFiles({ HOLDFAST_CA_FILE: shared }, { ...nobody, groups }, false);
      checkDataDir(folder, { ...nobody, groups }, false);
    };
    expect(() => check([4711])).not.toThrow();
    expect(readdirSync(folder)).toEqual(['shared.pem']);
    expect(() => check([4712])).toThrow('cannot be read by the user of the service');
  });

  test('is accepted if it can be read, or is not there yet', () => {
    const open = file('open.pem', 0o644);
    const settings = Object.fromEntries(names.map((name) => [name, open]));
    const url = `postgres://h/d?sslmode=verify-full&sslrootcert=system&sslkey=${open}`;
    const later = { HOLDFAST_VAULT_TOKEN_FILE: path.join(folder, 'none') };
    expect(() => checkFiles({ ...settings, ...later, HOLDFAST_DATABASE_URL: url }, null)).not.toThrow();
  });
});

test.each(['home/ada', 'root', 'tmp', 'var/tmp/x', 'run/user/1'])(
  '/%s is a folder that the unit hides from the service',
  (folder) => {
    const hidden = `/${folder}/c.pem`;
    expect(() => checkFiles({ HOLDFAST_TLS_CERT_FILE: hidden }, nobody, true)).toThrow(
      `  HOLDFAST_TLS_CERT_FILE: ${hidden} is in a folder that the service does not see`,
    );
    expect(() => checkDataDir(hidden, nobody, true)).toThrow('HOLDFAST_DATA_DIR');
  },
);

(isRoot ? test : test.skip)('checks run with the ids of the service, and ours come back', async () => {
  const ids = () => [process.geteuid?.(), process.getegid?.(), process.getgroups?.()];
  const before = ids();
  expect(await withIdsOf(nobody, async () => ids().slice(0, 2))).toEqual([65_534, 65_534]);
  expect(ids()).toEqual(before);
  await expect(withIdsOf(nobody, () => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
  expect(ids()).toEqual(before);
});
