import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import type { FastifyRequest } from 'fastify';
import { type BodyParts, receiveBody } from './request-body.ts';

async function keysOf(params: object, caller: object | null): Promise<unknown> {
  const keys: unknown[] = [];
  const body = Buffer.from('{}');
  const buffered = { body, release: () => {} };
  const note = ({ fairnessKey }: { fairnessKey: string }) => {
    keys.push(fairnessKey);
    return buffered;
  };
  const arrivals = { receive: async (_: unknown, options: { fairnessKey: string }) => note(options) };
  const inflate = async (_: unknown, _encoding: unknown, options: { fairnessKey: string }) => note(options);
  const config = { limits: { minBodyBytesPerSecond: 1 } };
  const parts = { config, bodyBuffer: { arrivals, inflate } } as unknown as BodyParts;
  const raw = Object.assign(Readable.from([body]), { socket: { destroyed: false, once: () => {}, off: () => {} } });
  await receiveBody(parts, { headers: {}, params, caller, raw } as unknown as FastifyRequest, 100);
  return keys;
}

test('a body shares memory with others of its organization, or else of its user', async () => {
  const caller = { userId: 'u', tokenId: 't' };
  expect(await keysOf({ organization: 'org' }, caller)).toEqual(['org', 'org']);
  expect(await keysOf({}, caller)).toEqual(['user u', 'user u']);
  expect(await keysOf({}, { ...caller, userId: null })).toEqual(['user t', 'user t']);
  expect(await keysOf({}, null)).toEqual(['', '']);
});
