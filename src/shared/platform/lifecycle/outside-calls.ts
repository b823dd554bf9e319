import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * `work` drops the priority, request id, trace and limits of the present call. For timers, connections and loops that later serve all
 * calls.
 */
export const outsideCalls: <T>(work: () => T) => T = AsyncLocalStorage.snapshot();
