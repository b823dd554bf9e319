import { AsyncLocalStorage } from 'node:async_hooks';

const requests = new AsyncLocalStorage<string | undefined>();

/**
 * Each log line of `work` has the id as `reqId`, including lines of work that it starts here or in a job. `undefined` stands for no
 * request, whatever the caller does.
 */
export function forRequest<T>(id: string | undefined, work: () => T): T {
  return requests.run(id, work);
}

export function currentRequest(): string | undefined {
  return requests.getStore();
}
