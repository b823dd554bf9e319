import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { findCliLogin } from './cli-login.ts';

test('empty variables are not set', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-login-'));
  const before = process.env['HOME'];
  try {
    process.env['HOME'] = folder;
    expect(homedir()).toBe(folder);
    mkdirSync(path.join(folder, '.pulumi'));
    const stored = {
      current: 'https://a.example',
      accessTokens: { 'https://a.example': 'a', 'https://b.example': 'b' },
    };
    writeFileSync(path.join(folder, '.pulumi', 'credentials.json'), JSON.stringify(stored));
    const empty = { HOLDFAST_URL: '', PULUMI_ACCESS_TOKEN: '', PULUMI_CREDENTIALS_PATH: '', PULUMI_HOME: '' };
    expect(findCliLogin({}, { ...empty, PULUMI_BACKEND_URL: '' })).toEqual({ origin: 'https://a.example', token: 'a' });
    expect(findCliLogin({}, { ...empty, PULUMI_BACKEND_URL: 'https://b.example/' })).toEqual({
      origin: 'https://b.example',
      token: 'b',
    });
    expect(() => findCliLogin({ url: '' }, {})).toThrow('"" is not the URL of a server');
  } finally {
    process.env['HOME'] = before;
    rmSync(folder, { recursive: true });
  }
});
