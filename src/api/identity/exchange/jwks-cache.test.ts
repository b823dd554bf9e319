import { expect, test } from '@jest/globals';
import type { FlattenedJWSInput } from 'jose';
import { heapGrowth } from '../../../../test/support/heap.ts';
import { createLogger } from '../../../shared/platform/logger/logger.ts';
import { JwksCache } from './jwks-cache.ts';

const logger = createLogger({ level: 'silent' }, { write: () => {} });
const signature = { payload: '', signature: '' } as FlattenedJWSInput;

test('of the keys of many issuers, only the members that are needed stay in memory', async () => {
  const x = Buffer.alloc(32, 7).toString('base64url');
  const key = { kty: 'OKP', crv: 'Ed25519', x, kid: 'a', z: Array.from({ length: 100_000 }, () => 0) };
  const large = { ...key, kid: 'b', use: 'sig'.padEnd(10_000) };
  const call = async (address: string) => {
    const { origin, pathname } = new URL(address);
    const document =
      pathname === '/keys' ? { keys: [key, large], other: key.z } : { issuer: origin, jwks_uri: `${origin}/keys` };
    return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(document)) };
  };
  const cache = new JwksCache({ outgoing: { call }, logger, outageMs: 600_000 });
  const growth = await heapGrowth(async () => {
    for (let at = 0; at < 30; at++) {
      const keyOf = cache.of(`https://${at}.example`);
      expect(await keyOf({ alg: 'EdDSA', kid: 'a' }, signature)).toMatchObject({ type: 'public' });
      await expect(keyOf({ alg: 'EdDSA', kid: 'b' }, signature)).rejects.toThrow('no applicable key');
    }
    return cache;
  });
  expect(growth).toBeLessThan(10 * 1024 * 1024);
});
