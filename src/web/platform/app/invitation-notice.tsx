import { Mail } from 'lucide-react';
import { Notice } from '../ui/notification.tsx';
import { useMe } from './me.ts';

/** That the person is invited to an organization, until they have answered. */
export function InvitationNotice() {
  const count = useMe()?.invitations ?? 0;
  if (count === 0) return null;
  return (
    <Notice
      tone="neutral"
      icon={<Mail size={17} />}
      title={count === 1 ? 'An organization has invited you' : `${count} organizations have invited you`}
      action={<a href="/account#invitations">Answer</a>}
    />
  );
}
