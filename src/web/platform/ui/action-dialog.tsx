import { type ReactNode, useContext, useState } from 'react';
import styles from './action-dialog.module.css';
import { Button } from './button.tsx';
import { Dialog, DialogActions } from './dialog.tsx';
import { TextField } from './field.tsx';
import { SubmitBlock } from './submit-block.ts';
import { actionDialogTexts } from './texts.tsx';

export interface ActionDialogProps {
  readonly title: string;
  readonly description?: ReactNode;
  readonly action: string;
  readonly stay?: string;
  readonly isDanger?: boolean;
  /** The call has been sent: the dialog cannot be closed until the result is known, because it may be a value that is shown only once. */
  readonly isPending?: boolean;
  readonly isReady?: boolean;
  readonly typed?: string;
  readonly error: { readonly message: string } | null;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly onReload?: (() => void) | null;
  /** A note about the values of the fields. */
  readonly note?: string | null;
  readonly children?: ReactNode;
}

/**
 * The dialog stays open until the change has succeeded; then the caller closes it. `typed` is a name that must be typed first, for changes
 * that cannot be undone. `onReload`: the current version must be loaded first, because another user has changed it.
 */
export function ActionDialog({
  action,
  children,
  description,
  error,
  isDanger = false,
  isPending = false,
  isReady = true,
  note = null,
  onClose,
  onReload = null,
  onSubmit,
  stay = actionDialogTexts.cancel,
  title,
  typed,
}: ActionDialogProps) {
  const [text, setText] = useState('');
  const halt = useContext(SubmitBlock);
  const close = isPending ? () => {} : onClose;
  const mayDo = isReady && !isPending && onReload === null && (typed === undefined || text === typed);
  return (
    <Dialog title={title} description={description} isOpen onClose={close}>
      <form
        className={styles['form']}
        onSubmit={(event) => {
          event.preventDefault();
          if (mayDo) onSubmit();
        }}
      >
        {children}
        {typed === undefined ? null : (
          <TextField
            label={actionDialogTexts.typeToConfirm(<code>{typed}</code>)}
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        )}
        <p role="status">{note}</p>
        {halt !== null ? (
          <p className={styles['error']} role="alert">
            {halt}
          </p>
        ) : error === null ? null : (
          <div className={styles['problem']}>
            <p className={styles['error']} role="alert">
              {error.message}
            </p>
            {onReload === null ? null : (
              <Button size="small" disabled={isPending} onClick={onReload}>
                {actionDialogTexts.loadCurrent}
              </Button>
            )}
          </div>
        )}
        <DialogActions>
          <Button disabled={isPending} onClick={close}>
            {stay}
          </Button>
          <Button kind={isDanger ? 'danger' : 'main'} type="submit" disabled={!mayDo}>
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
