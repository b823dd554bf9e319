import { expect, test } from '@jest/globals';
import type { GivenSettings } from '../../shared/platform/config/settings-file.ts';
import { askForSettings } from './setup-questions.ts';

/** Answers in order, then with what is suggested. */
async function answer(settings: GivenSettings, answers: readonly string[]): Promise<GivenSettings> {
  const left = [...answers];
  const questions = {
    ask: async (_question: string, suggested: string) => left.shift() || suggested,
    close: () => {},
  };
  const known = { settings, admin: null, organization: 'acme' };
  return (await askForSettings(questions, known, new Set())).settings;
}

const files = {
  HOLDFAST_LISTEN: '0.0.0.0:443',
  HOLDFAST_PUBLIC_URL: 'https://pulumi.example.com',
  HOLDFAST_TLS_CERT_FILE: '/c.pem',
  HOLDFAST_TLS_KEY_FILE: '/k.pem',
};

test('from certificate files to a proxy on this machine: the service listens there only', async () => {
  const { HOLDFAST_LISTEN, HOLDFAST_PUBLIC_URL, HOLDFAST_TRUSTED_PROXIES, ...rest } = await answer(files, [
    '',
    '',
    '2',
  ]);
  expect(rest).toEqual({});
  expect([HOLDFAST_LISTEN, HOLDFAST_PUBLIC_URL, HOLDFAST_TRUSTED_PROXIES]).toEqual([
    undefined,
    'https://pulumi.example.com',
    '127.0.0.1,::1',
  ]);
});

test.each([
  { HOLDFAST_LISTEN: '127.0.0.1:9999', HOLDFAST_TRUSTED_PROXIES: '127.0.0.1' },
  { HOLDFAST_LISTEN: '10.0.0.2:9090', HOLDFAST_TRUSTED_PROXIES: '10.0.0.7' },
])('a listener that the proxy needs stays: %j', async (settings) => {
  const given = { ...settings, HOLDFAST_PUBLIC_URL: 'https://pulumi.example.com' };
  expect(await answer(given, [])).toEqual(given);
});
