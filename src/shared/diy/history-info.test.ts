import { expect, test } from '@jest/globals';
import { reencryptConfig, toHistoryConfig } from './history-info.ts';

const value = { string: 'v', secret: false, object: false };
const secret = { string: 'one', secret: true, object: false };
/** As a client other than the CLI may have sent it. */
const stored = JSON.stringify({
  ...{ region: 'eu', none: null, 'ns:broken': { string: '{', secret: true, object: true } },
  ...{ 'ns:key': value, 'ns:secret': secret },
});

test('a history file has the part of a configuration that the CLI can read', async () => {
  const config = await toHistoryConfig(stored, async (ciphertexts) => ciphertexts.map((each) => `new ${each}`));
  expect(config).toEqual({ 'ns:key': 'v', 'ns:secret': { secure: 'new one' } });
});

test('other ciphertexts replace those that the CLI can read, and nothing else', async () => {
  const replaced = await reencryptConfig(stored, async (ciphertexts) => ciphertexts.map((each) => `new ${each}`));
  expect(JSON.parse(replaced)).toEqual({
    ...(JSON.parse(stored) as object),
    'ns:secret': { ...secret, string: 'new one' },
  });
});
