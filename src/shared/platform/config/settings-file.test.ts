import { expect, test } from '@jest/globals';
import { editSettings, parseSettings, SettingsFileError } from './settings-file.ts';

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
