import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { configText } from './config-text.ts';
import { toHistoryConfig } from './history-info.ts';

test('values of objects stay texts and exact numbers in every version of YAML', async () => {
  const object =
    '{"v":"2012-10-17","n":9007199254740993,"big":1e400,"c":"NO","no":"1_000","list":["0b11",true,null,{}],"odd":"a\u2028b\u0085c"}';
  const stored = JSON.stringify({
    'ns:o': { string: object, secret: false, object: true },
    'ns:k': { string: 'yes', secret: false, object: false },
    'ns:s': { string: 'v1:A:B', secret: true, object: false },
  });
  const text = configText({ encryptionsalt: 'v1:salt' }, await toHistoryConfig(stored, async (each) => each));
  for (const exact of [
    '"v": "2012-10-17"',
    '"n": 9007199254740993,',
    '"big": 1e400,',
    '"no": "1_000"',
    'a\\u2028b\\u0085c',
  ])
    expect(text).toContain(exact);
  for (const version of ['1.1', '1.2'] as const) {
    const { config, encryptionsalt } = parse(text, { version, customTags: ['timestamp'] });
    expect([encryptionsalt, config]).toEqual([
      'v1:salt',
      { 'ns:k': 'yes', 'ns:o': { ...JSON.parse(object), big: Number.POSITIVE_INFINITY }, 'ns:s': { secure: 'v1:A:B' } },
    ]);
  }
  expect(configText({}, {})).toBe('config: {}\n');
  expect(configText({ secretsprovider: 'awskms://x' }, null)).toBe('secretsprovider: awskms://x\n');
});
