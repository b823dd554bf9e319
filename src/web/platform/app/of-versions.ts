import { hashKey, type QueryKey } from '@tanstack/react-query';

/**
 * Options of a query about versions, which do not change. Another stack may get the name, or a restored database the numbers, of
 * others: `ids` tell them apart, such as of their updates.
 */
export function ofVersions(...ids: readonly string[]) {
  return { staleTime: 'static', queryKeyHashFn: (key: QueryKey) => hashKey([...key, ids]) } as const;
}
