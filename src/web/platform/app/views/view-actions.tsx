import { useMutation } from '@tanstack/react-query';
import { Pencil, Pin, Save, Trash2, Users } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { useMayManage } from '../organization-pages.ts';
import type { OwnedView, ViewedPage } from '../procedure-types.ts';
import { trpc } from '../trpc.ts';
import { maxNameChars, thenReadViews } from './saved-views.ts';
import { viewTexts } from './texts.ts';
import { isSameView } from './viewed-page.ts';
import styles from './views-dialog.module.css';

/**
 * The author of a view renames and shares it, and replaces its filters by `viewed`, the filters of this page. Admins may delete shared
 * views.
 */
export function ViewActions({ view, viewed }: { readonly view: OwnedView; readonly viewed: ViewedPage }) {
  const { id, isOwn, isPinned, isShared, name, organization, page } = view;
  const [open, setOpen] = useState<'rename' | 'replace' | 'delete' | null>(null);
  const [draft, setDraft] = useState(name);
  const mayManage = useMayManage(organization);
  const pin = useMutation(trpc.views.pin.mutationOptions(thenReadViews));
  const change = useMutation(trpc.views.change.mutationOptions(thenReadViews));
  const remove = useMutation(trpc.views.remove.mutationOptions(thenReadViews));
  const forget = (): void => {
    for (const mutation of [pin, change, remove]) mutation.reset();
  };
  const show = (next: typeof open): void => {
    forget();
    setOpen(next);
  };
  const close = (): void => show(null);
  /** Ignores clicks while a call is pending: a disabled button would lose the focus. */
  const unlessPending = (act: () => void) => (): void => {
    if (isPending) return;
    forget();
    act();
  };
  const isPending = pin.isPending || change.isPending || remove.isPending;
  const error = pin.error ?? change.error ?? remove.error;
  const rename = (): void => change.mutate({ organization, id, name: draft.trim() }, { onSuccess: close });
  return (
    <>
      <div className={styles['actions']}>
        <IconButton
          text={viewTexts.pin}
          name={name}
          isPressed={isPinned}
          onClick={unlessPending(() => pin.mutate({ organization, id, isPinned: !isPinned }))}
        >
          <Pin size={15} aria-hidden="true" fill={isPinned ? 'currentColor' : 'none'} />
        </IconButton>
        {isOwn ? (
          <>
            <IconButton
              text={viewTexts.share}
              name={name}
              isPressed={isShared}
              onClick={unlessPending(() => change.mutate({ organization, id, isShared: !isShared }))}
            >
              <Users size={15} aria-hidden="true" fill={isShared ? 'currentColor' : 'none'} />
            </IconButton>
            {page === viewed.page && !isSameView(view, viewed) ? (
              <IconButton text={viewTexts.update} name={name} onClick={() => show('replace')}>
                <Save size={15} aria-hidden="true" />
              </IconButton>
            ) : null}
            <IconButton
              text={viewTexts.rename}
              name={name}
              onClick={() => {
                setDraft(name);
                show('rename');
              }}
            >
              <Pencil size={15} aria-hidden="true" />
            </IconButton>
          </>
        ) : null}
        {isOwn || mayManage ? (
          <IconButton text={viewTexts.delete} name={name} onClick={() => show('delete')}>
            <Trash2 size={15} aria-hidden="true" />
          </IconButton>
        ) : null}
      </div>
      {open === 'rename' ? (
        <form
          className={styles['fields']}
          onSubmit={(event) => {
            event.preventDefault();
            if (draft.trim() !== '' && !isPending) rename();
          }}
        >
          <TextField
            label={viewTexts.newName}
            autoFocus
            value={draft}
            maxLength={maxNameChars}
            onChange={({ target }) => setDraft(target.value)}
          />
          <Button onClick={close}>{viewTexts.cancel}</Button>
          <Button type="submit" disabled={draft.trim() === '' || isPending}>
            {viewTexts.rename}
          </Button>
        </form>
      ) : null}
      {open === 'replace' ? (
        <div className={styles['question']}>
          <p>{isShared ? viewTexts.allSee : viewTexts.askReplace}</p>
          <Button onClick={close}>{viewTexts.cancel}</Button>
          <Button
            kind="main"
            disabled={isPending}
            autoFocus
            onClick={() => change.mutate({ organization, id, viewed }, { onSuccess: close })}
          >
            {viewTexts.updateView}
          </Button>
        </div>
      ) : null}
      {open === 'delete' ? (
        <div className={styles['question']}>
          <p>{isShared ? viewTexts.allLose : viewTexts.askDelete}</p>
          <Button onClick={close}>{viewTexts.cancel}</Button>
          <Button kind="danger" disabled={isPending} autoFocus onClick={() => remove.mutate({ organization, id })}>
            {viewTexts.deleteView}
          </Button>
        </div>
      ) : null}
      {error ? (
        <p className={styles['error']} role="alert">
          {error.message}
        </p>
      ) : null}
    </>
  );
}

function IconButton({
  children,
  isPressed,
  name,
  onClick,
  text,
}: {
  readonly text: string;
  readonly name: string;
  readonly onClick: () => void;
  readonly children: ReactNode;
  readonly isPressed?: boolean;
}) {
  return (
    <Button
      kind="quiet"
      size="icon"
      className={styles['action']}
      aria-label={viewTexts.ofView(text, name)}
      aria-pressed={isPressed}
      title={text}
      onClick={onClick}
    >
      {children}
    </Button>
  );
}
