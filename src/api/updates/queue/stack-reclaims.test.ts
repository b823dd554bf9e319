import { expect, test } from '@jest/globals';
import { isFirst, runFirst } from '../../../shared/platform/db/connection-gate.ts';
import { createLogger } from '../../../shared/platform/logger/logger.ts';
import { currentRequest, forRequest } from '../../../shared/platform/logger/request-lines.ts';
import { StackReclaims } from './stack-reclaims.ts';

test('a reclaim has neither the priority nor the request id of the check that begins it', async () => {
  const reclaimed = Promise.withResolvers<void>();
  const seen: unknown[] = [];
  const reclaims = new StackReclaims(
    async () => void seen.push(isFirst(), currentRequest()),
    createLogger({ level: 'silent' }),
  );
  runFirst(() => forRequest('a call', () => reclaims.begin('stack', reclaimed.resolve)));
  await reclaimed.promise;
  expect(seen).toEqual([false, undefined]);
  await reclaims.close();
});
