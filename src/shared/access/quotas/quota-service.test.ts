import { expect, test } from '@jest/globals';
import type { Database } from '../../platform/db/database.ts';
import { createLogger } from '../../platform/logger/logger.ts';
import { Quotas } from './quota-service.ts';

test('a read that has begun before a change does not hide it', async () => {
  const gates: ((stacks: number) => void)[] = [];
  const db = {
    any: () =>
      new Promise<object[]>((resolve) => {
        gates.push((stacks) => resolve([{ organization: 'acme', stacks }]));
      }),
  } as unknown as Database;
  const defaults = { stacks: 0, keptBytes: 0, inFlightBytes: 0, updates: 0, requestsPerSecond: 0 };
  const quotas = new Quotas({ db, defaults, logger: createLogger({ level: 'silent' }), onRefused: () => undefined });
  const early = quotas.limitsOf('acme');
  quotas.forget();
  const late = quotas.limitsOf('acme');
  expect(gates).toHaveLength(2);
  gates[1]?.(2);
  expect((await late).stacks).toBe(2);
  gates[0]?.(1);
  await early;
  expect((await quotas.limitsOf('acme')).stacks).toBe(2);
  expect(gates).toHaveLength(2);
});
