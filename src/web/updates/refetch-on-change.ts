import { useEffect, useRef } from 'react';

/**
 * Reloads a query when `status` changes: a query that is polled only while an update runs misses its end. `refetch`: null if the query is
 * disabled.
 */
export function useRefetchOnChange(status: string, refetch: (() => unknown) | null): void {
  const shown = useRef(status);
  useEffect(() => {
    if (shown.current !== status) refetch?.();
    shown.current = status;
  }, [refetch, status]);
}
