import { useEffect, useRef } from 'react';

/** Reads a query again when `status` changes: what is polled only while an update runs misses its end. `refetch`: null if it is not asked. */
export function useRefetchOnChange(status: string, refetch: (() => unknown) | null): void {
  const shown = useRef(status);
  useEffect(() => {
    if (shown.current !== status) refetch?.();
    shown.current = status;
  }, [refetch, status]);
}
