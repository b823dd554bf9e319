import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Runs `work` outside the call that happens to begin it: without its priority, its request id, its trace and its limits. For timers,
 * connections and loops that later serve all calls.
 */
export const outsideCalls: <T>(work: () => T) => T = AsyncLocalStorage.snapshot();
