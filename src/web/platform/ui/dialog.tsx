import { Dialog as Base } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import { type ReactNode, useCallback, useMemo, useRef } from 'react';
import { buttonClass } from './button.tsx';
import styles from './dialog.module.css';
import { dialogTexts } from './texts.tsx';

/** From before each dialog opened, the newest first. */
const openers = new WeakMap<Element, readonly Element[]>();

/**
 * The focused element, and the elements that had the focus before the dialogs or menus around it: the inner ones may be gone before the new
 * dialog.
 */
function findOpeners(): readonly Element[] {
  const { activeElement, body } = document;
  const focused = activeElement === null || activeElement === body ? [] : [activeElement];
  // A button that is disabled during its call has lost the focus.
  const popup = focused[0]?.closest('[role=dialog], [role=menu]') ?? document.querySelector('[role=dialog]');
  const trigger = document.querySelector('[aria-haspopup=menu][aria-expanded=true]');
  const before = popup?.getAttribute('role') === 'menu' ? [trigger ?? popup] : popup ? openers.get(popup) : undefined;
  return [...focused, ...(before ?? [])];
}

/** Lets the keyboard continue from the content. */
function focusContent(): void {
  if (document.activeElement === document.body) document.getElementById('content')?.focus({ preventScroll: true });
}

/** Time for which a row is watched after a dialog: lists are reloaded around the end of the dialog. */
const patienceMs = 30_000;

/** Moves the focus to the content if the opener disappears: a deleted row also removes its focused button. */
function watch(opener: HTMLElement): void {
  const observer = new MutationObserver(() => {
    if (opener.isConnected) return;
    observer.disconnect();
    focusContent();
  });
  observer.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => observer.disconnect(), patienceMs);
}

/**
 * `position`: in the middle, near the top (for search), or along the left side. `isKept`: only its buttons close the dialog, because its
 * content is not shown again.
 */
export function Dialog({
  children,
  description,
  isKept = false,
  isOpen,
  onClose,
  position = 'middle',
  title,
}: {
  readonly title: string;
  readonly isOpen: boolean;
  readonly isKept?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly description?: ReactNode;
  readonly position?: 'middle' | 'top' | 'side';
}) {
  const popup = useRef<HTMLDivElement>(null);
  // Remembered before a field in the dialog takes the focus, which returns there later.
  const before = useMemo(() => (isOpen ? findOpeners() : []), [isOpen]);
  // Not in an effect, because the popup is rendered later than the dialog.
  const keepPopup = useCallback(
    (element: HTMLDivElement | null) => {
      popup.current = element;
      if (element) openers.set(element, before);
    },
    [before],
  );
  const returnFocus = () => {
    const opener = before.find(({ isConnected }) => isConnected);
    if (opener instanceof HTMLElement) {
      watch(opener);
      return opener;
    }
    // Runs once the dialog is gone.
    queueMicrotask(focusContent);
    return false;
  };
  // The first field, not the close button; but not on a touch screen, where that would open the keyboard over the text.
  const focusField = (by: string) =>
    by === 'touch' || (popup.current?.querySelector<HTMLElement>('input, select, textarea') ?? true);
  return (
    <Base.Root
      open={isOpen}
      onOpenChange={(open, { reason }) => (open || (isKept && reason !== 'close-press') ? undefined : onClose())}
    >
      <Base.Portal>
        <Base.Backdrop className={styles['backdrop']} />
        <Base.Popup
          ref={keepPopup}
          className={`${styles['popup']} ${styles[position]}`}
          finalFocus={returnFocus}
          {...(position === 'middle' ? { initialFocus: focusField } : {})}
        >
          {position === 'middle' ? (
            <header className={styles['head']}>
              <Base.Title className={styles['title']}>{title}</Base.Title>
              <Base.Close className={buttonClass({ kind: 'quiet', size: 'icon' })} aria-label={dialogTexts.close}>
                <X size={16} />
              </Base.Close>
            </header>
          ) : (
            <Base.Title className="unseen">{title}</Base.Title>
          )}
          {description === undefined ? null : (
            <Base.Description className={styles['description']}>{description}</Base.Description>
          )}
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <footer className={styles['actions']}>{children}</footer>;
}
