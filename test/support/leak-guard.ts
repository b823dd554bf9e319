import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach } from '@jest/globals';
import { listOpenApps } from './test-app.ts';

const settleLimitMs = 60_000;

afterEach(async () => {
  for (const { context } of listOpenApps()) {
    const leaks = (): string[] => [
      ...(context.db.poolState().acquired > 0 ? [`${context.db.poolState().acquired} pool connections held`] : []),
      ...(context.payloads.bytesHeld() > 0 ? [`${context.payloads.bytesHeld()} bytes left in the payload store`] : []),
    ];
    // Statistics of a store that others use, too, are as of its last check.
    const check = () => context.payloads.check(settleLimitMs).catch(() => {});
    const deadline = Date.now() + settleLimitMs;
    await check();
    while (leaks().length > 0 && Date.now() < deadline) {
      await sleep(10);
      await check();
    }
    if (leaks().length > 0) throw new Error(`Leak: ${leaks().join(', ')}`);
  }
});
