import { useEffect, useRef } from 'react';

/** A query that is polled only while an update runs misses its end. `refetch` is null if the query is disabled. */
export function useRefetchOnChange(status: string, refetch: (() => unknown) | null): void {
  const shown = useRef(status);
  useEffect(() => {
    if (shown.current !== status) refetch?.();
    shown.current = status;
  }, [refetch, status]);
}
