import { mayRetry, retryDelay } from '../platform/app/api-error.ts';

/** Retries temporary failures, like the queries of pages. Rejects with the last error. */
export async function retried<T>(call: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await call();
    } catch (error) {
      if (!mayRetry(failures, error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, retryDelay(failures, error)));
    }
  }
}
