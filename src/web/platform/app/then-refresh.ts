import { queryClient } from './trpc.ts';

/** Options of a mutation that reads all shown data again, and then calls `onDone`. */
export function thenRefresh(onDone: () => void) {
  return {
    onSuccess: async () => {
      await queryClient.invalidateQueries();
      onDone();
    },
  };
}
