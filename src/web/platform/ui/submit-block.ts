import { createContext, type ReactNode } from 'react';

/** Why no form can be sent for now: open dialogs show it in place of their errors. Null: forms can be sent. */
export const SubmitBlock = createContext<ReactNode>(null);
