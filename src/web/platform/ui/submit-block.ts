import { createContext, type ReactNode } from 'react';

/** Open forms show why none can be sent at the moment. Null: forms can be sent. */
export const SubmitBlock = createContext<ReactNode>(null);
