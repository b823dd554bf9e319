import { createContext, type ReactNode } from 'react';

/** Why no form can be sent for now: open dialogs say it in place of their errors. Null: they can. */
export const SendingHalt = createContext<ReactNode>(null);
