import { describe, expect, test } from '@jest/globals';
import { bodyRoutes } from '../support/body-routes.ts';
import { allRouteNames, routeNamed, routeNames } from '../support/every-body-route.ts';
import { expectNothingChanged, expectRejection } from '../support/wire.ts';

const routes = bodyRoutes();
const { send } = routes;

const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** Texts that are not JSON in UTF-8, made from a body that the route accepts. */
const brokenTexts: [string, (valid: string) => string | Buffer][] = [
  ['cut off in the middle', (valid) => valid.slice(0, valid.length / 2)],
  ['cut off before its last byte', (valid) => valid.slice(0, -1)],
  ['with text after it', (valid) => `${valid} x`],
  ['twice', (valid) => valid + valid],
  ['with a comma too many', (valid) => `${valid.slice(0, -1)},}`],
  ['in single quotes', (valid) => valid.replaceAll('"', "'")],
  ['with a comment', (valid) => `/* c */${valid}`],
  ['with NaN', (valid) => `${valid.slice(0, -1)},"x":NaN}`],
  ['with a number that begins with 0', (valid) => `${valid.slice(0, -1)},"x":01}`],
  ['with a control character in a string', (valid) => `${valid.slice(0, -1)},"x":"a\u0000b"}`],
  ['with a bad escape', (valid) => `${valid.slice(0, -1)},"x":"\\x41"}`],
  ['with half an escape', (valid) => `${valid.slice(0, -1)},"x":"\\u12"}`],
  ['after a BOM', (valid) => `\ufeff${valid}`],
  ['in UTF-16', (valid) => Buffer.from(valid, 'utf16le')],
  ['in UTF-16 with a BOM', (valid) => Buffer.from(`\ufeff${valid}`, 'utf16le')],
  ['with Latin-1 in a string', (valid) => Buffer.from(`${valid.slice(0, -1)},"x":"é"}`, 'latin1')],
  [
    'with a surrogate in UTF-8',
    (valid) =>
      Buffer.concat([Buffer.from(`${valid.slice(0, -1)},"x":"`), Buffer.from('eda080', 'hex'), Buffer.from('"}')]),
  ],
  [
    'with an overlong NUL',
    (valid) =>
      Buffer.concat([Buffer.from(`${valid.slice(0, -1)},"x":"`), Buffer.from('c080', 'hex'), Buffer.from('"}')]),
  ],
  ['with 100,000 levels', (valid) => `${valid.slice(0, -1)},"x":${deep(100_000)}}`],
  ['with 100,000 levels that never end', (valid) => `${valid.slice(0, -1)},"x":${'{"a":'.repeat(100_000)}`],
];

describe.each(allRouteNames)('%s rejects the body', (name) => {
  test.each(brokenTexts)('%s', async (_what, make) => {
    await expectNothingChanged(routes.server, async () => {
      expectRejection(await send(name, make(routeNamed(routes.scene, name).valid)), 400);
    });
  });
});

describe('an empty body', () => {
  const mayBeEmpty = ['start'];
  test.each(allRouteNames.filter((name) => !mayBeEmpty.includes(name)))('is rejected by %s', async (name) => {
    await expectNothingChanged(routes.server, async () => {
      expectRejection(await send(name, ''), 400);
    });
  });
});

describe('encodings that are not gzip', () => {
  test.each(allRouteNames)('are rejected by %s with 415', async (name) => {
    const { valid } = routeNamed(routes.scene, name);
    await expectNothingChanged(routes.server, async () => {
      for (const encoding of ['br', 'deflate', 'zstd', 'gzip, gzip', 'compress', 'x'.repeat(4000)]) {
        expectRejection(await send(name, valid, { 'Content-Encoding': encoding }), 415);
      }
    });
  });
});

describe('a body that is not gzip despite its header', () => {
  test.each(allRouteNames)('is rejected by %s', async (name) => {
    const { valid } = routeNamed(routes.scene, name);
    const { gzipSync } = await import('node:zlib');
    const whole = gzipSync(valid);
    const flipped = Buffer.from(whole);
    flipped[Math.floor(whole.length / 2)] = (flipped[Math.floor(whole.length / 2)] as number) ^ 0xff;
    const wrongSum = Buffer.from(whole);
    wrongSum[whole.length - 6] = (wrongSum[whole.length - 6] as number) ^ 0xff;
    const wrongSize = Buffer.from(whole);
    wrongSize.writeUInt32LE(3, whole.length - 4);
    const bodies: [string, Buffer][] = [
      ['plain JSON', Buffer.from(valid)],
      ['a first byte only', whole.subarray(0, 1)],
      ['a header only', whole.subarray(0, 10)],
      ['cut in the middle', whole.subarray(0, whole.length / 2)],
      ['without its last byte', whole.subarray(0, -1)],
      ['without its trailer', whole.subarray(0, -8)],
      ['with a flipped byte', flipped],
      ['with a wrong checksum', wrongSum],
      ['with a wrong size', wrongSize],
      ['with garbage behind', Buffer.concat([whole, Buffer.from('garbage behind it')])],
      ['with half a second member', Buffer.concat([whole, whole.subarray(0, 12)])],
      ['twice', Buffer.concat([whole, whole])],
      ['compressed twice', gzipSync(whole)],
    ];
    await expectNothingChanged(routes.server, async () => {
      for (const [what, body] of bodies) {
        const answer = await send(name, body, { 'Content-Encoding': 'gzip' });
        expect({ what, status: answer?.status }).toEqual({ what, status: 400 });
        expectRejection(answer, 400);
      }
    });
  });
});

describe('bodies above the limit for direct commits', () => {
  // Padding after the value keeps the text valid and makes it a job for the workers.
  const pad = (text: string) => text + ' '.repeat(300 * 1024);

  test.each(routeNames.payload)('%s rejects broken JSON', async (name) => {
    const { valid } = routeNamed(routes.scene, name);
    await expectNothingChanged(routes.server, async () => {
      expectRejection(await send(name, pad(`${valid}x`)), 400);
      expectRejection(await send(name, pad(valid.slice(0, -1))), 400);
    });
  });

  test.each(routeNames.payload)('%s rejects broken gzip', async (name) => {
    const { gzipSync } = await import('node:zlib');
    const { randomBytes } = await import('node:crypto');
    const { valid } = routeNamed(routes.scene, name);
    const incompressible = `${valid.slice(0, -1)},"x":"${randomBytes(300 * 1024).toString('base64')}"}`;
    const whole = gzipSync(incompressible);
    expect(whole.length).toBeGreaterThan(256 * 1024);
    await expectNothingChanged(routes.server, async () => {
      for (const body of [
        whole.subarray(0, -1),
        whole.subarray(0, -8),
        Buffer.concat([whole, Buffer.from('garbage behind it')]),
        Buffer.from(incompressible),
      ]) {
        expectRejection(await send(name, body, { 'Content-Encoding': 'gzip' }), 400);
      }
    });
  });
});
