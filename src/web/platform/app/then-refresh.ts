import { queryClient } from './trpc.ts';

/** Options of a change after which all that is shown is read again, and then `onDone` is called. */
export function thenRefresh(onDone: () => void) {
  return {
    onSuccess: async () => {
      await queryClient.invalidateQueries();
      onDone();
    },
  };
}
