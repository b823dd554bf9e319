import { Dialog as Base } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import { type ReactNode, useMemo, useRef } from 'react';
import { buttonClass } from './button.tsx';
import styles from './dialog.module.css';
import { dialogTexts } from './texts.tsx';

/**
 * A window above the page. `position`: in the middle, near the top (for search), or along the left side. `isKept`: only its buttons
 * close it, because what it shows is not shown again.
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
  // Remembered before a field in it takes the focus: it returns there.
  const opener = useMemo(() => (isOpen ? document.activeElement : null), [isOpen]);
  const returnFocus = () =>
    opener instanceof HTMLElement && opener.isConnected && opener !== document.body ? opener : true;
  // The first field, not the button that closes; on a touch screen, that would open the keyboard above the text.
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
          ref={popup}
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

/** The row of buttons at the end of a dialog. */
export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <footer className={styles['actions']}>{children}</footer>;
}
