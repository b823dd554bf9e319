import { useQuery } from '@tanstack/react-query';
import { FileCode } from 'lucide-react';
import { useState } from 'react';
import { ActionDialog, type ActionDialogProps } from '../ui/action-dialog.tsx';
import { CheckboxField } from '../ui/field.tsx';
import { Notice } from '../ui/notification.tsx';
import { Time } from '../ui/time.tsx';
import type { Declaration } from './contract.ts';
import type { ManagedKind } from './managed-mark.tsx';
import { useMayManage } from './organization-pages.ts';
import { trpc } from './trpc.ts';

/** An object that a configuration may declare, as its record has it. */
export interface ManagedObject {
  readonly organization: string;
  readonly kind: ManagedKind;
  /** Null: a new object. */
  readonly object: string | null;
  /** Known to be declared: users who are not admins are not told where. */
  readonly isManaged?: boolean;
}

/** A dialog that changes an object. If a configuration declares the object, it says so, and goes on after a confirmation only. */
export function ManagedDialog({
  children,
  isReady = true,
  managed,
  ...dialog
}: ActionDialogProps & { readonly managed: ManagedObject }) {
  const { isManaged = false, kind, object, organization } = managed;
  const [isConfirmed, setIsConfirmed] = useState(false);
  const isAsked = useMayManage(organization) && object !== null;
  const { data, isLoading } = useQuery(
    trpc.access.declaration.queryOptions({ organization, kind, object: object ?? '' }, { enabled: isAsked }),
  );
  const declaration = data?.declaration ?? null;
  const isHeld = declaration !== null || (isManaged && !isAsked);
  return (
    <ActionDialog {...dialog} isReady={isReady && !isLoading && (isConfirmed || !isHeld)}>
      {children}
      {isHeld ? (
        <Notice tone="warning" icon={<FileCode size={17} />} title="Managed by apply">
          <p>
            {declaration === null ? 'A configuration declares it.' : <Source kind={kind} declaration={declaration} />}{' '}
            The next <code>holdfast apply</code> reverts this change.
          </p>
          <CheckboxField
            label="Change it anyway"
            checked={isConfirmed}
            onChange={({ target }) => setIsConfirmed(target.checked)}
          />
        </Notice>
      ) : null}
    </ActionDialog>
  );
}

function Source({
  declaration: { appliedAt, appliedBy, labels, name },
  kind,
}: {
  readonly kind: string;
  readonly declaration: Declaration;
}) {
  const text = Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .join(', ');
  return (
    <>
      A configuration declares it as {kind} <code>{name}</code>
      {text === '' ? null : (
        <>
          {' '}
          with <code>{text}</code>
        </>
      )}
      , applied{appliedBy === '' ? '' : ` by ${appliedBy}`} <Time at={appliedAt} />.
    </>
  );
}
