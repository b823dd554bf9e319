import { useQuery } from '@tanstack/react-query';
import { FileCode } from 'lucide-react';
import { useState } from 'react';
import { ActionDialog, type ActionDialogProps } from '../ui/action-dialog.tsx';
import { CheckboxField } from '../ui/field.tsx';
import { Notice } from '../ui/notice.tsx';
import { Time } from '../ui/time.tsx';
import type { ManagedKind } from './managed-mark.tsx';
import { useMayManage } from './organization-pages.ts';
import type { Declaration } from './procedure-types.ts';
import { managedTexts } from './texts.tsx';
import { trpc } from './trpc.ts';

/** As the record of the configuration names it. */
export interface ManagedObject {
  readonly organization: string;
  readonly kind: ManagedKind;
  /** Null: a new object, which replaces none. */
  readonly object: string | null;
  /** Users who are not admins do not learn the place of the declaration. */
  readonly isManaged?: boolean;
}

/** If a configuration declares the object, or may declare it, the dialog says so, and continues only after a confirmation. */
export function ManagedDialog({
  children,
  isReady = true,
  managed,
  ...dialog
}: ActionDialogProps & { readonly managed: ManagedObject }) {
  const { isManaged = false, kind, object, organization } = managed;
  // The confirmation is for one object: a form for a new rule may replace another rule after each change.
  const [confirmed, setConfirmed] = useState<string | null>(null);
  const isConfirmed = confirmed !== null && confirmed === object;
  const isAsked = useMayManage(organization) && object !== null;
  const { data, isError } = useQuery(
    trpc.access.declaration.queryOptions({ organization, kind, object: object ?? '' }, { enabled: isAsked }),
  );
  const declaration = data?.declaration ?? null;
  const isUnknown = isAsked && isError && data === undefined;
  const isHeld = declaration !== null || isUnknown || (isManaged && !isAsked);
  const isLoading = isAsked && data === undefined && !isError;
  return (
    <ActionDialog {...dialog} isReady={isReady && !isLoading && (isConfirmed || !isHeld)}>
      {children}
      {isHeld ? (
        <Notice
          tone="warning"
          icon={<FileCode size={17} />}
          title={isUnknown ? managedTexts.possiblyManaged : managedTexts.managed}
        >
          <p>
            {isUnknown ? (
              managedTexts.unknown
            ) : declaration === null ? (
              managedTexts.declared
            ) : (
              <Source kind={kind} declaration={declaration} />
            )}{' '}
            {managedTexts.mayRevert(<code>holdfast apply</code>)}
          </p>
          <CheckboxField
            label={managedTexts.changeAnyway}
            checked={isConfirmed}
            onChange={({ target }) => setConfirmed(target.checked ? object : null)}
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
  return managedTexts.declaredAs({
    kind,
    name: <code>{name}</code>,
    labels: text === '' ? null : <code>{text}</code>,
    by: appliedBy,
    at: <Time at={appliedAt} />,
  });
}
