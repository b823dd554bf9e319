import { hashKey, type QueryKey } from '@tanstack/react-query';

/**
 * Versions do not change. Another stack may get the name of a former one, or a restored database may repeat numbers: `ids`, for example of
 * their updates, distinguish them.
 */
export function ofVersions(...ids: readonly string[]) {
  return { staleTime: 'static', queryKeyHashFn: (key: QueryKey) => hashKey([...key, ids]) } as const;
}
