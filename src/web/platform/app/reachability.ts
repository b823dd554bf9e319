import { createFlag } from '../ui/flag.ts';

const reached = createFlag(true);

/** Says whether the server has answered the last time. */
export const noteReached = reached.set;

/** Whether the server answers, as far as the page has asked. */
export const useIsReached = reached.use;
