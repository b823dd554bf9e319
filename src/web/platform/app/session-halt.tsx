import type { ReactNode } from 'react';
import { SendingHalt } from '../ui/sending-halt.ts';
import { useSessionEnded } from './session.ts';

/** Lets open forms say that the session has ended. */
export function SessionHalt({ children }: { readonly children: ReactNode }) {
  return <SendingHalt value={useSessionEnded() ? <Ended /> : null}>{children}</SendingHalt>;
}

function Ended() {
  return (
    <>
      Your session has ended.{' '}
      <a href="/sign-in" target="_blank" rel="noopener">
        Sign in
      </a>{' '}
      in another tab, and go on here.
    </>
  );
}
