export type Bytes = Required<Pick<AsyncIterator<Buffer, undefined>, 'next' | 'return'>>;

/** Calls `end` once the bytes are read, have failed or are abandoned. */
export function whenEnded(bytes: Bytes, end: (() => void) | null): Bytes {
  return {
    next: async () => {
      try {
        const step = await bytes.next();
        if (step.done) end?.();
        return step;
      } catch (error) {
        end?.();
        throw error;
      }
    },
    return: async () => {
      try {
        return await bytes.return();
      } finally {
        end?.();
      }
    },
  };
}

/** This is no generator: returning a generator that was not started would not close `rest`. */
export function resume(first: IteratorResult<Buffer>, rest: Bytes): AsyncIterable<Buffer> {
  let pending: IteratorResult<Buffer> | null = first;
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const step = pending ?? (await rest.next());
        pending = null;
        return step;
      },
      return: () => rest.return(),
    }),
  };
}
