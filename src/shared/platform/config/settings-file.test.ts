import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { editSettings, loadSettingsFile, parseSettings, SettingsFileError } from './settings-file.ts';

const file = `# Where the data is.
HOLDFAST_DATA_DIR=/var/lib/holdfast

export HOLDFAST_LOG_LEVEL=debug   # more of it
AWS_REGION='eu-central-1'
`;

test('a file of settings is read with its quotes and comments', () => {
  expect(parseSettings(file)).toEqual({
    HOLDFAST_DATA_DIR: '/var/lib/holdfast',
    HOLDFAST_LOG_LEVEL: 'debug',
    AWS_REGION: 'eu-central-1',
  });
  expect(parseSettings('HOLDFAST_LISTEN=\n')).toEqual({});
});

test('what stays is not touched, what changes stays where it was, and what is new comes last', () => {
  const { AWS_REGION: _, ...settings } = parseSettings(file);
  expect(
    editSettings(file, { ...settings, HOLDFAST_DATA_DIR: '/srv', HOLDFAST_S3_BUCKET: 'states' }),
  ).toBe(`# Where the data is.
HOLDFAST_DATA_DIR=/srv

export HOLDFAST_LOG_LEVEL=debug   # more of it
HOLDFAST_S3_BUCKET=states
`);
});

test('the same settings give the same file', () => expect(editSettings(file, parseSettings(file))).toBe(file));

test.each([
  'postgres://u:p%40ss@db:5432/n?sslmode=verify-full',
  'a value with # and spaces',
  'k1:AAAA/BB+CC==,k2:vault://host/transit/key',
  "it's",
  'back\\slash',
  '$HOME `x`',
])('%j is read as it was written', (value) => {
  expect(parseSettings(editSettings('', { HOLDFAST_X: value }))).toEqual({ HOLDFAST_X: value });
});

test.each(['two\nlines', `'single' and "double"`])('%j is refused rather than changed', (value) => {
  expect(() => editSettings('', { HOLDFAST_X: value })).toThrow(SettingsFileError);
});

test('an empty variable hides no value of the file, because it is not set', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-settings-'));
  try {
    const named = path.join(folder, 'holdfast.env');
    writeFileSync(named, 'HOLDFAST_A=1\nHOLDFAST_B=2\nHOLDFAST_C=3\nHOLDFAST_D=\n');
    const environment: NodeJS.ProcessEnv = { HOLDFAST_A: '', HOLDFAST_B: 'other' };
    loadSettingsFile(named, environment);
    expect(environment).toEqual({ HOLDFAST_A: '1', HOLDFAST_B: 'other', HOLDFAST_C: '3' });
    expect(() => loadSettingsFile(path.join(folder, 'none'), environment)).toThrow(SettingsFileError);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
