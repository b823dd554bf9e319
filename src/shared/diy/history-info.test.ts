import { expect, test } from '@jest/globals';
import { readHistoryInfo, readServiceInfo, reencryptConfig, toHistoryConfig, withRequester } from './history-info.ts';

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

test('texts that mention an escape of NUL are kept; only a NUL and half a character in a message are replaced', () => {
  const config = { 'p:re': '^[^\\u0000-\\u001f]+$', 'p:nul': 'a\0b', 'p:list': ['\0', '\\u0000'] };
  const environment = { re: '\\u0000', nul: 'a\0b', half: '\ud800' };
  const info = readHistoryInfo('a file', JSON.stringify({ message: 'keeps \\u0000\0\ud800', config, environment }));
  expect(info.message).toBe('keeps \\u0000\ufffd\ufffd');
  expect(JSON.parse(info.environment)).toEqual(environment);
  expect(JSON.parse(info.config)).toMatchObject({
    ...{ 'p:re': { string: config['p:re'] }, 'p:nul': { string: config['p:nul'] } },
    'p:list': { string: JSON.stringify(config['p:list']), object: true },
  });
  const ofService = readServiceInfo({ environment, config: { 'p:re': { string: config['p:re'] } } });
  expect(JSON.parse(ofService.config)['p:re'].string).toBe(config['p:re']);
  expect(withRequester(info.environment, null)).toBe(info.environment);
  expect(JSON.parse(withRequester(info.environment, 'ada'))).toMatchObject(environment);
});

test('counts of changes are whole numbers: the CLI would show no history at all because of another one', () => {
  const read = (resourceChanges: string) =>
    readHistoryInfo('a file', `{"resourceChanges":${resourceChanges}}`).resourceChanges;
  expect(read('{"create":1.5,"update":2,"delete":"1","same":1e2,"replace":1e400,"read":null}')).toBe(
    '{"update":2,"same":100}',
  );
  for (const none of ['[1]', '"x"', 'null', '7', '{}']) expect(read(none)).toBe('{}');
});
