import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Runs `work` without the priority, request id, trace and limits of the call that happens to begin it. For timers, connections and loops
 * that later serve all calls.
 */
export const outsideCalls: <T>(work: () => T) => T = AsyncLocalStorage.snapshot();
