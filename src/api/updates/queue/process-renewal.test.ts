import { expect, jest, test } from '@jest/globals';
import { isFirst } from '../../../shared/platform/db/connection-gate.ts';
import { createLogger } from '../../../shared/platform/logger/logger.ts';
import { currentRequest, forRequest } from '../../../shared/platform/logger/request-lines.ts';
import type { UpdateQueueRepository } from '../../../shared/updates/update-queue-repository.ts';
import { ProcessRenewal } from './process-renewal.ts';

function renewals() {
  const begun: PromiseWithResolvers<void>[] = [];
  const seen: unknown[] = [];
  const entries = {
    renewProcess: () => {
      seen.push([isFirst(), currentRequest()]);
      const renewal = Promise.withResolvers<void>();
      begun.push(renewal);
      return renewal.promise;
    },
    removeProcess: async () => {},
  } as unknown as UpdateQueueRepository;
  const renewal = new ProcessRenewal(entries, 'process', createLogger({ level: 'silent' }));
  return { begun, renewal, seen };
}

/** Runs all that is due. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('calls that come while the process is being renewed share the renewal after that', async () => {
  const { begun, renewal } = renewals();
  const ended: string[] = [];
  const call = (name: string): Promise<unknown> => renewal.renew().then(() => ended.push(name));
  const calls = [call('first'), call('second'), call('third')];
  await settle();
  expect(begun).toHaveLength(1);
  begun[0]?.resolve();
  await settle();
  expect([begun.length, ended]).toEqual([2, ['first']]);
  calls.push(call('fourth'));
  begun[1]?.resolve();
  await settle();
  expect([begun.length, ended]).toEqual([3, ['first', 'second', 'third']]);
  begun[2]?.resolve();
  await Promise.all(calls);
});

test('a call shares the failure of its own renewal only', async () => {
  const { begun, renewal } = renewals();
  const outcomes = Promise.allSettled([renewal.renew(), renewal.renew(), renewal.renew()]);
  begun[0]?.reject(new Error('no connection'));
  await settle();
  begun[1]?.resolve();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
});

test('while calls wait, one that comes soon after a renewal needs no other', async () => {
  const { begun, renewal } = renewals();
  const now = jest.spyOn(performance, 'now').mockReturnValue(0);
  renewal.start();
  const renewed = async (count: number): Promise<void> => {
    const call = renewal.renew();
    expect(begun).toHaveLength(count);
    begun[count - 1]?.resolve();
    await call;
  };
  await renewed(1);
  now.mockReturnValue(399);
  await renewed(1);
  now.mockReturnValue(400);
  await renewed(2);
  renewal.stop();
  // Nothing renews the process until this call waits.
  await renewed(3);
  now.mockRestore();
  await renewal.close();
});

test('a renewal has priority, and no request id of the call that begins it', async () => {
  const { begun, renewal, seen } = renewals();
  const call = forRequest('a call', () => renewal.renew());
  begun[0]?.resolve();
  await call;
  expect(seen).toEqual([[true, undefined]]);
});
