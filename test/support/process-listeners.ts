const streams = [process.stdout, process.stderr];
const before = streams.map((stream) => stream.listeners('error'));

/**
 * Removes the error listeners of stdout and stderr that modules have added since this one was loaded. Jest loads modules anew for each
 * test file: Slonik's logger adds one each time, and Node warns of a leak after ten.
 */
export function removeAddedListeners(): void {
  for (const [at, stream] of streams.entries())
    for (const listener of stream.listeners('error'))
      if (!before[at]?.includes(listener)) stream.off('error', listener as (error: Error) => void);
}
