import { createFlag } from './flag.ts';

const printing = createFlag(false);
addEventListener('beforeprint', () => printing.set(true));
addEventListener('afterprint', () => printing.set(false));

/** Whether the page is being put on paper. */
export const useIsPrinting = printing.use;
