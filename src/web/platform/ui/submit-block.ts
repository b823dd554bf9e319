import { createContext, type ReactNode } from 'react';

/** Why no form can be sent at the moment: open forms show it. Null: forms can be sent. */
export const SubmitBlock = createContext<ReactNode>(null);
