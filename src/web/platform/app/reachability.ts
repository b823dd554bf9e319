import { createFlag } from '../ui/flag.ts';

const reached = createFlag(true);

/** Records whether the server answered the last request. */
export const noteReached = reached.set;

/** Whether the server answered the page's last request. */
export const useIsReached = reached.use;
