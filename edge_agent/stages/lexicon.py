"""LEXICON: the words that labels put before their values, per field and language; a table to be extended.

Phrases are separated by `|`; case, accents, spaces and punctuation do not matter, nor do the letters and digits
that OCR swaps (label_text.skeleton). A phrase belongs to one field only. `other` names what is none of our fields:
such a phrase ends the value before it and keeps its own from being taken for one.
"""

from __future__ import annotations

OTHER = "other"

LEXICON: dict[str, tuple[str, ...]] = {
    "expiry_date": (
        # en
        "exp|exp date|exp dt|exp on|expd|expiry|expiry date|expire date|expires|expires on|expires end|expiration"
        "|expiration date|date of expiry|best before|best before end|best before date|best before end of|best by"
        "|best by date|best if used by|best if used before|best when used by|best used by|best used before|best until"
        "|best consumed before|bb|bbe|bbd|bb exp|bb date|use by|use by date|use before|use before end|use before end of"
        "|use or freeze by|use until|use within date|sell by|sell by date|consume by|consume before"
        "|to be consumed before|enjoy by|enjoy before|good until|good through|good thru|valid until|valid thru"
        "|valid through|valid to|not to be used after|do not use after|shelf life until|shelf life ends|eat by|drink by"
        "|drink before"
        "|display until|discard after|discard by|freeze by|not after|must be used by|expiring|ubd|exdate|best bef",
        # de
        "mhd|mindestens haltbar bis|mindestens haltbar bis ende|mind haltbar bis|min haltbar bis|haltbar bis"
        "|haltbar bis ende|haltbarkeit bis|mindesthaltbarkeitsdatum|mindesthaltbarkeit|zu verbrauchen bis"
        "|verbrauchen bis|verbrauch bis|verbrauchsdatum|verbrauchen vor|verwendbar bis|verw bis|verwenden bis"
        "|verfall|verfallsdatum|verfalldatum|verfällt am|ablaufdatum|läuft ab am|gültig bis|aufbrauchen bis"
        "|zu verwenden bis|am besten vor|verbrauchen sie bis",
        # fr
        "à consommer de préférence avant|à consommer de préférence avant le|à consommer de préférence avant fin"
        "|consommer de préférence avant|consommer de préférence avant le|de préférence avant le|à consommer avant"
        "|à consommer avant le|à consommer avant fin|à consommer jusqu'au|consommer avant|consommer avant le"
        "|date de péremption|péremption|périme le|ddm|dlc|dluo|date limite de consommation|date limite d'utilisation"
        "|date de durabilité minimale|expire le|expire fin|date d'expiration|à utiliser avant|à utiliser avant le"
        "|utiliser avant|à utiliser de préférence avant|utiliser de préférence avant|valable jusqu'au|date limite"
        "|meilleur avant|à consommer|perem",
        # es
        "consumir preferentemente antes de|consumir preferentemente antes del|consumir preferentemente antes del fin de"
        "|consumir antes de|consumir antes del|consumir preferentemente|consúmase preferentemente antes de"
        "|consúmase antes de|fecha de caducidad|fecha caducidad|fecha cad|fec cad|f cad|caducidad|cad|caduca|caduca el"
        "|fecha de vencimiento|fecha vencimiento|fecha venc|f venc|vencimiento|vence|vence el|venc|vto|fecha vto"
        "|válido hasta|fecha de expiración|fecha de consumo preferente|consumo preferente|usar antes de|usar antes del"
        "|mejor antes de|utilizar antes de|expira|expira el",
        # it
        "da consumarsi preferibilmente entro|da consumarsi preferibilmente entro il"
        "|da consumarsi preferibilmente entro fine|da consumarsi entro|da consumarsi entro il|da consumare entro"
        "|da consumare entro il|consumare entro|consumare preferibilmente entro|preferibilmente entro"
        "|preferibilmente entro il|scadenza|data di scadenza|data scadenza|scad|scade|scade il|tmc"
        "|utilizzare entro|utilizzare entro il|valido fino al|data di durata minima",
        # nl, pt, and a word each from further neighbours
        "ten minste houdbaar tot|tenminste houdbaar tot|ten minste houdbaar tot einde|tht|houdbaar tot|te gebruiken tot"
        "|tgt|gebruiken voor|te gebruiken voor|uiterste gebruiksdatum|uiterste consumptiedatum|vervaldatum"
        "|uiterste verkoopdatum|houdbaarheidsdatum|minimaal houdbaar tot",
        "validade|data de validade|válido até|consumir de preferência antes de|consumir de preferência antes do fim de"
        "|consumir até|de preferência antes de|data de vencimento|usar até|melhor antes de|data limite de consumo"
        "|val|val até|prazo de validade",
        "najlepiej spożyć przed|należy spożyć do|data ważności|termin ważności|termin przydatności|bäst före|sista"
        " förbrukningsdag|utgångsdatum|bedst før|mindst holdbar til|sidste anvendelsesdato|best før|siste forbruksdag"
        "|parasta ennen|viimeinen käyttöpäivä|minimální trvanlivost do|spotřebujte do|son kullanma tarihi|skt|tett"
        "|годен до|срок годности|minőségét megőrzi|felhasználható|a se consuma înainte de",
        # zh, ja, ko
        "保质期至|保质期到|保质期|有效期至|有效期到|有效期|有效期限|失效日期|失效期|到期日|到期日期|截止日期|使用期限|使用期限至|限用日期|限期使用日期"
        "|此日期前最佳|最佳食用日期|最佳使用日期|最佳赏味期|保鲜期至|赏味期限|有效日期|有效日期至|賞味期限|消費期限|使用期限|保存期限|有效期限至|유통기한|소비기한"
        "|사용기한|까지",
    ),
    "manufacture_date": (
        "mfg|mfg on|mfg date|mfg dt|mfgd|mfd|mfd on|mfd date|mfr date|mnf date|mnfg|man date|manf date|manuf date"
        "|manufd|manufactured|manufactured on|manufactured date|manufacturing date|manufacture date"
        "|date of manufacture|date of manufacturing|date mfg|date of mfg|date manufactured|dom|prod|prod on|prod date"
        "|prod dt|prd|prd date|production date|production|date of production|production on|produced|produced on"
        "|date produced|made on|made|packed|packed on|packed date|pack date|pack on|packing date|packaging date"
        "|packaged|packaged on|date of packing|date of packaging|date packed|pkd|pkd on|pkd date|pkg date|pkgd"
        "|bottled on|bottling date|baked on|baked|roasted on|roast date|brewed on|brew date|filled on|filling date"
        "|fill date|canned on|frozen on|date of freezing|built|built on|build date|date built|year of manufacture"
        "|manufacture|assembled|assembled on"
        "|assembly date|date of assembly|harvested on|harvest date|milled on|born on|date of construction"
        "|construction date|date made|date of make|fabrication date|created on",
        "hergestellt|hergestellt am|herstellung|herstellung am|herstellungsdatum|herstelldatum|herst datum|herst am"
        "|produktionsdatum|produktion|produktion am|produziert|produziert am|prod datum|verpackt am|verpackungsdatum"
        "|abgepackt am|abpackdatum|gepackt am|abfülldatum|abgefüllt am|gebacken am|geröstet am|röstdatum"
        "|fertigungsdatum|fertigung|gefertigt am|eingefroren am|gefroren am|baudatum|montiert am|erzeugt am",
        "fabriqué le|fabriquée le|date de fabrication|date fabrication|date fab|fabrication|fab|fab le|produit le"
        "|date de production|date production|conditionné le|date de conditionnement|emballé le|date d'emballage"
        "|date emballage|embouteillé le|préparé le|torréfié le|congelé le|date de congélation|assemblé le"
        "|date d'assemblage",
        "fecha de fabricación|fecha fabricación|fecha fab|fec fab|f fab|fabricación|fabricado el|fecha de elaboración"
        "|fecha elaboración|fecha elab|f elab|elaboración|elab|elaborado el|fecha de producción|fecha producción"
        "|producción|producido el|fecha de envasado|fecha envasado|envasado el|f env|fecha de empaque|fecha empaque"
        "|fecha de empacado|empacado el|envasado en fecha|fecha de manufactura|fecha de montaje|congelado el",
        "data di produzione|data produzione|produzione|prodotto il|data di fabbricazione|data fabbricazione"
        "|fabbricazione|fabbricato il|confezionato il|data di confezionamento|data confezionamento|imbottigliato il"
        "|congelato il|tostato il|assemblato il",
        "productiedatum|geproduceerd op|verpakt op|verpakkingsdatum|fabricagedatum|fabricage|gefabriceerd op"
        "|ingevroren op|gemaakt op|data de fabricação|data de fabrico|fabricado em|fabrico|data de produção"
        "|produzido em|embalado em|data de embalagem|envasado em|data fab|fabricação",
        "data produkcji|wyprodukowano|tillverkad|tillverkningsdatum|packdag|fremstillet|produktionsdato|valmistettu"
        "|datum výroby|üretim tarihi|дата изготовления|изготовлено|gyártás ideje",
        "生产日期|制造日期|出厂日期|包装日期|分装日期|灌装日期|生产年月|制造年月|加工日期|装配日期|製造日期|製造年月日|製造日|包裝日期|生產日期|제조일자|제조일|제조연월일|제조",
    ),
    "lot": (
        "lot|lot no|lot nr|lot num|lot number|lot code|lot id|lot batch|lot batch no|lotno|batch|batch no|batch nr"
        "|batch num|batch number|batch code|batch id|batch lot|batch lot no|b no|b nr|bno|b n|bn|bt no|bch|bch no"
        "|l no|lno|production lot|production batch|mfg lot|mfg lot no|lot mfg|control no|control number|ctrl no"
        "|production code|prod code|manufacturing lot|manufacturing batch|packing lot|lot ref",
        "charge|chargen nr|charge nr|charge no|chargen|chargennummer|chargencode|chargennr|chargenbezeichnung|ch b"
        "|ch nr|chb|losnummer|los nr|los|loskennzeichnung|partie|partie nr|partienummer|lot kennung",
        "n de lot|no de lot|numéro de lot|num de lot|n lot|lot n|code lot|numéro du lot|lot de fabrication",
        "lote|lote n|lote no|lote nro|lote num|n de lote|no de lote|nro de lote|nro lote|número de lote|num lote"
        "|num de lote|cod lote|código de lote|partida|lote de fabricación",
        "lotto|lotto n|lotto no|lotto nr|n lotto|n di lotto|numero di lotto|numero lotto|codice lotto|partita"
        "|lotto di produzione",
        "partijnummer|partij|partij nr|lotnummer|lot nummer|chargenummer|batchnummer|productielot|número do lote"
        "|lote de fabrico|código do lote",
        "nr partii|numer partii|partia|satsnummer|batchnr|partinr|partinummer|šarže|č šarže|parti no|номер партии"
        "|партия|gyártási szám|erä|erätunnus",
        "批号|生产批号|产品批号|批次|批次号|生产批次|批次编号|批次號|批號|製造批號|ロット|ロット番号|製造ロット|로트|로트번호|제조번호",
    ),
    "serial_number": (
        "s n|sn|s no|sno|ser|ser no|ser nr|ser num|ser number|serno|serial|serial no|serial nr|serial num"
        "|serial number|serial code|serial id|unit serial|unit serial no|unit serial number|device serial"
        "|device serial no|device serial number|product serial|product serial no|product serial number"
        "|machine serial no|machine serial|machine no|manufacturer serial number|mfg serial|mfg s n|service tag|esn"
        "|equipment serial|equipment serial no|instrument serial no|factory serial|factory no|unit s n|serial n",
        "seriennummer|serien nr|seriennr|serien no|serie nr|ser nummer|fabriknummer|fabrik nr|fabr nr"
        "|fabrikationsnummer|gerätenummer|geräte nr|gerätenr|maschinennummer|maschinen nr|masch nr|werknummer|werk nr"
        "|gerät nr|fertigungsnummer|fertigungs nr",
        "numéro de série|n de série|no de série|num de série|n série|no série|num série|série n|série no|numéro série"
        "|série|n fabrication|numéro de fabrication",
        "número de serie|n de serie|no de serie|nro de serie|núm de serie|num de serie|n serie|no serie|nro serie"
        "|núm serie|serie n|serie no|serie|n s|serie del equipo|número serie|número de série|número série",
        "numero di serie|n di serie|numero seriale|numero serie|num di serie|matricola|matricola n|n matricola"
        "|numero di matricola|seriale|seriale n|codice seriale",
        "serienummer|serie nummer|serienr|serie nr|numer seryjny|nr seryjny|nr ser|sériové číslo|výrobní číslo|v č"
        "|sarjanumero|seri no|серийный номер|заводской номер|заводской №|зав №|gyári szám",
        "序列号|产品序列号|设备序列号|出厂编号|出厂序号|机身编号|机身号|机身序列号|机号|机器编号|设备编号|序列號|序號|製造番号|シリアル番号|シリアル|일련번호|시리얼번호",
    ),
    "weight_volume": (
        "net|net wt|net weight|nett|nett wt|nett weight|net contents|net content|net cont|net volume|net vol|net qty"
        "|net quantity|net mass|netwt|qty|quantity|qnty|contents|content|cont|weight|wt"
        "|drained weight|drained wt|dr wt|drained net weight|vol|volume|capacity|count|pack size|pack of|n w|nw"
        "|nt wt|unit weight|total weight|fill weight|fill volume|pieces|pcs|pcs qty|pcs per box"
        "|contains net|mass|minimum net weight|average net weight|package contents|pack contents|pack quantity"
        "|pieces per pack",
        "nettogewicht|netto|netto gewicht|netto inhalt|nettofüllmenge|nettoinhalt|füllmenge|nennfüllmenge|füllgewicht"
        "|inhalt|gewicht|abtropfgewicht|stückzahl|menge|volumen|packungsinhalt|einwaage"
        "|fischeinwaage|fleischeinwaage|rauminhalt|nettovolumen|anzahl|packungsgröße",
        "poids net|poids net égoutté|poids égoutté|poids|contenu|contenu net|contenance|volume net|quantité"
        "|quantité nette|qté|qte|pds net|p net|poids net à l'emballage|contenance nette|masse nette|capacité",
        "peso neto|peso escurrido|peso neto escurrido|peso|contenido|contenido neto|cont neto|cont net"
        "|cantidad|cantidad neta|volumen neto|cant|masa neta|p neto|capacidad",
        "peso netto|peso sgocciolato|contenuto|contenuto netto|quantità|quantità netta|volume netto"
        "|capacità|peso netto sgocciolato",
        "inhoud|netto inhoud|uitlekgewicht|hoeveelheid|nettovolume|aantal|peso líquido|peso liq|conteúdo"
        "|conteúdo líquido|cont líquido|peso escorrido|quantidade|peso drenado|peso líquido drenado",
        "masa netto|waga netto|ilość|nettovikt|nettovægt|nettovekt|nettopaino|sisältö|hmotnost|objem|net ağırlık"
        "|net miktar|масса нетто|вес нетто|объем|nettó tömeg",
        "净含量|净重|净容量|净量|规格|固形物|固形物含量|重量|容量|数量|体积|含量|沥干物|淨重|淨含量|内容量|正味量|正味重量|중량|내용량|순중량",
    ),
    "barcode_digits": (
        "gtin|gtin 8|gtin 12|gtin 13|gtin 14|gtin no|ean|ean 8|ean 13|ean code|ean no|ean nr|upc|upc a|upc code|upc no"
        "|barcode|barcode no|bar code|bar code no|isbn|isbn 13|itf 14|sscc|case code|case gtin|jan code|ean upc"
        "|product barcode|scan code",
        "strichcode|ean nummer|barcode nummer|code barres|code à barres|code ean|gencod|código de barras|cod barras"
        "|cod de barras|código ean|codice a barre|codice ean|streepjescode|barcodenummer|kod kreskowy|штрихкод",
        "条码|条形码|商品条码|产品条码|商品条形码|条码号|條碼|國際條碼|バーコード|바코드",
    ),
    "contact": (
        "tel|tel no|telephone|telephone no|phone|phone no|phone number|ph|ph no|call|call us|call us on|call us at"
        "|call toll free|fax|fax no|hotline|toll free|tollfree|customer service|customer services|customer care"
        "|customer care no|customer support|consumer service|consumer services|consumer care|consumer care no"
        "|consumer line|consumer helpline|helpline|help line|careline|care line|support|e mail|email|email us|mail"
        "|mail us|web|web site|website|visit|visit us|visit us at|visit us on|visit our website|contact|contact us"
        "|contact no|for more information|more info|for info|info|questions|questions or comments|internet|homepage"
        "|online|mobile|mob|whatsapp|toll free no|for complaints|feedback|enquiries|order line|service line|cell"
        "|find us at|follow us|learn more|scan or visit|emergency phone|emergency tel",
        "kundenservice|kundendienst|kontakt|telefon|telefonnummer|telefax|verbraucherservice|verbrauchertelefon"
        "|service hotline|servicehotline|service nummer|service telefon|infotelefon|notruf|rufnummer|mehr infos"
        "|webseite|besuchen sie uns|fragen|bestellhotline",
        "service consommateurs|service consommateur|service clients|service client|téléphone|tél|tél no|courriel"
        "|site web|site internet|contactez nous|appelez le|numéro vert|n vert|n cristal|renseignements"
        "|service après vente|rejoignez nous|plus d'infos",
        "atención al cliente|atención al consumidor|servicio al cliente|servicio de atención al cliente|teléfono|telf"
        "|tfno|tlf|correo|correo electrónico|página web|sitio web|contacto|línea gratuita|llame al|visite"
        "|servicio al consumidor|visítenos",
        "contatti|contatto|servizio clienti|servizio consumatori|telefono|numero verde|sito|sito web|assistenza"
        "|assistenza clienti|info consumatori|klantenservice|consumentenservice|telefoon|telefoonnummer"
        "|atendimento ao cliente|atendimento ao consumidor|apoio ao cliente|apoio ao consumidor|sac|telefone|linha"
        " de apoio|correio eletrônico|infolinia|obsługa klienta|kundtjänst|konsumentkontakt|kundeservice|тел|телефон",
        "网址|网站|官网|官方网站|电话|客服电话|客服热线|服务热线|服务电话|咨询电话|咨询热线|消费者热线|消费者服务热线|联系电话|联系方式|热线|传真|邮箱|电子邮箱|電話|客服專線"
        "|お客様相談室|お問い合わせ|고객센터|고객상담실|소비자상담실|전화",
    ),
    "ingredients": (
        "ingredients|ingredient|ingredients list|list of ingredients|active ingredient|active ingredients"
        "|inactive ingredients|other ingredients|composition|contains|made from|made with|consists of|materials"
        "|excipients|each tablet contains|each capsule contains|each ml contains|each gram contains|each 5 ml contains",
        "zutaten|zutatenliste|bestandteile|inhaltsstoffe|enthält|zusammensetzung|wirkstoff|wirkstoffe|sonstige"
        " bestandteile|hilfsstoffe|1 tablette enthält|eine tablette enthält",
        "ingrédients|ingrédient|composition|contient|liste des ingrédients|composé de|principe actif|excipients"
        "|ingredientes|composición|contiene|lista de ingredientes|principio activo|excipientes|componentes"
        "|ingredienti|composizione|principio attivo|eccipienti|ingrediënten|bevat|samenstelling|contém|composição"
        "|składniki|skład|ingredienser|innehåll av|ainesosat|složení|içindekiler|состав|összetevők|ingrediente",
        "配料|配料表|成分|原料|主要成分|主要原料|全成分|成分表|原材料|原材料名|原料成份|成份|有效成分|辅料|원재료명|원재료|성분",
    ),
    "warning": (
        "warning|warnings|caution|danger|hazard|precaution|precautions|beware|notice safety"
        "|keep out of reach of children|keep out of the reach of children|out of reach of children"
        "|keep away from children|keep away from fire|keep away from heat|avoid contact with eyes"
        "|avoid contact with skin|for external use only|external use only|highly flammable|extremely flammable"
        "|flammable|harmful if swallowed|harmful|toxic|poison|corrosive|irritant|may contain|may contain traces of"
        "|may cause|allergy advice|allergy warning|allergen information|allergens|wear protective gloves"
        "|wear eye protection|high voltage|risk of electric shock|choking hazard|do not swallow|do not ingest"
        "|if swallowed|in case of contact with eyes|causes serious eye irritation|hot surface|sharp edges|not for"
        " children under|do not incinerate|contents under pressure|pressurised container|pressurized container",
        "achtung|warnung|vorsicht|gefahr|warnhinweis|warnhinweise|gefahrenhinweis|sicherheitshinweis|darf nicht in die"
        " hände von kindern gelangen|außer reichweite von kindern|für kinder unzugänglich|kann spuren von"
        "|leicht entzündlich|leichtentzündlich|hochentzündlich|gesundheitsschädlich|ätzend|giftig|reizt die augen"
        "|nicht verschlucken|hochspannung|nur zur äußerlichen anwendung|heiße oberfläche|erstickungsgefahr"
        "|schutzhandschuhe tragen|allergiehinweis|kühl und trocken gefahr",
        "avertissement|mise en garde|tenir hors de portée des enfants|hors de portée des enfants"
        "|ne pas laisser à la portée des enfants|peut contenir|peut contenir des traces|dangereux|usage externe"
        "|très inflammable|inflammable|éviter le contact|nocif|toxique|ne pas avaler|haute tension"
        "|provoque une irritation|surface chaude|attention danger|précautions d'emploi",
        "advertencia|advertencias|precaución|precauciones|peligro|atención|cuidado"
        "|manténgase fuera del alcance de los niños|mantener fuera del alcance de los niños"
        "|fuera del alcance de los niños|puede contener|puede contener trazas|no ingerir|inflamable|nocivo|tóxico"
        "|evitar el contacto|uso externo|alta tensión|alto voltaje|superficie caliente|alérgenos|riesgo de",
        "avvertenza|avvertenze|attenzione|pericolo|tenere fuori dalla portata dei bambini"
        "|fuori dalla portata dei bambini|può contenere|può contenere tracce|infiammabile|uso esterno|non ingerire"
        "|evitare il contatto|alta tensione|waarschuwing|waarschuwingen|let op|gevaar|voorzichtig"
        "|buiten bereik van kinderen|buiten het bereik van kinderen houden|kan sporen bevatten|ontvlambaar|atenção"
        "|aviso|perigo|manter fora do alcance das crianças|fora do alcance das crianças|pode conter|não ingerir"
        "|ostrzeżenie|uwaga|niebezpieczeństwo|chronić przed dziećmi|varning|advarsel|varoitus|upozornění|varování"
        "|uyarı|dikkat|внимание|осторожно|берегите от детей|хранить в недоступном для детей месте",
        "警告|注意|危险|小心|当心|请勿|切勿|禁止|远离儿童|避免儿童接触|儿童不宜|过敏原|过敏原信息|致敏物质|易燃|高温|有毒|注意事项|警示|使用上の注意|危険|경고|주의|위험",
    ),
    "address": (
        "manufactured by|manufactured for|made by|made for|produced by|produced for|packed by|packed for|packaged by"
        "|distributed by|distributor|dist by|imported by|importer|imported and distributed by|marketed by|mfd by"
        "|mfg by|mfd and mktd by|mktd by|bottled by|sold by|supplied by|developed by|manufacturer|address|head office"
        "|registered office|regd office|importer address|p o box|po box|eu representative|authorised representative"
        "|manufactured and packed by|roasted by|brewed by|exported by|prepared by|assembled by|factory address",
        "hergestellt von|hergestellt für|hergestellt durch|hersteller|herst|vertrieb|vertrieb durch|vertrieben durch"
        "|importeur|importiert durch|importiert von|abgefüllt von|abgefüllt für|abgefüllt durch|inverkehrbringer"
        "|produziert von|produziert für|verpackt von|anschrift|postfach|verpackt durch",
        "fabriqué par|fabriqué pour|produit par|produit pour|distribué par|distributeur|importé par|importateur"
        "|conditionné par|élaboré par|mis en bouteille par|emballé par|fabricant|adresse|siège social|boîte postale",
        "fabricado por|fabricado para|distribuido por|distribuidor|importado por|importador|elaborado por|envasado por"
        "|producido por|fabricante|dirección|domicilio|comercializado por|embotellado por|apartado de correos",
        "prodotto da|prodotto per|distribuito da|distributore|importato da|importatore|confezionato da"
        "|imbottigliato da|fabbricante|produttore|indirizzo|sede legale|stabilimento di|geproduceerd door"
        "|vervaardigd door|verdeeld door|geïmporteerd door|fabrikant|adres|postbus|produzido por|embalado por"
        "|endereço|morada|distribuído por|wyprodukowano przez|producent|dystrybutor|tillverkas av|importör"
        "|valmistaja|výrobce|üretici|изготовитель|производитель|адрес|gyártó",
        "制造商|生产商|生产企业|生产厂家|制造企业|厂址|厂名|地址|经销商|总经销|代理商|委托方|受托方|委托企业|进口商|出品商|出品|公司地址|通讯地址|製造者|製造商|地點|住所|販売者|輸入者"
        "|제조원|판매원|수입원|주소|제조사",
    ),
    OTHER: (
        "made in|product of|produce of|country of origin|origin|assembled in|designed in|printed in|packed in"
        "|manufactured in|produced in|bottled in|imported from|grown in|harvested in|caught in",
        "model no|model number|model name|modell nr|mod no|art no|art nr|article no|article number|artikel nr"
        "|artikelnummer|art number|part no|part number|p n|pn|pno|item no|item number|item code|sku|ref no"
        "|reference no|reference number|product code|product no|product id|product number|catalog no"
        "|catalogue no|cat no|order no|order number|po no|po number|purchase order|invoice no|tracking no|stock no"
        "|drawing no|type no|bestell nr|bestellnummer|material no|material nr|mat nr|sachnummer|teilenummer|teile nr"
        "|customer no|rev no|hardware version|software version|firmware version|fcc id|ic id|licence no|license no"
        "|patent no|reg no|registration no|fssai|fssai lic no|approval no|batch size|lot size",
        "référence|réf|n article|référence produit|número de pieza|modelo no|código de producto|n de artículo|codice"
        " articolo|codice prodotto|cod art|modelo|modell|modèle|modello",
        "temp range|temperature range|temperature|operating temperature|storage temperature|store below|store in|store"
        " at|keep refrigerated|keep frozen|keep cool|keep dry|keep away from sunlight|store in a cool dry place|storage"
        "|storage conditions|refrigerate after opening|once opened|after opening|handle with care|this side up"
        "|do not stack|do not freeze|do not litter|recycle|please recycle|dispose of|shake well|shake well before use"
        "|serving suggestion|serving size|servings per container|servings|serves|nutrition|nutrition facts|nutrition"
        " information|nutritional information|energy|calories|qc passed|quality control|inspected by|satisfaction"
        " guaranteed|new recipe|open here|tear here|push here|fragile|limited edition|free from",
        "hergestellt in|made in germany|ursprung|herkunft|ursprungsland|vor gebrauch schütteln|kühl lagern|trocken"
        " lagern|kühl und trocken lagern|gekühlt lagern|nach dem öffnen|nährwerte|nährwertangaben|serviervorschlag"
        "|fabriqué en|produit en|origine|conserver au frais|à conserver au frais|conserver au sec|agiter avant emploi"
        "|bien agiter avant emploi|suggestion de présentation|valeurs nutritionnelles|fabriqué en france"
        "|fabricado en|hecho en|producto de|origen|país de origen|conservar en lugar fresco y seco|conservar en frío"
        "|agitar antes de usar|agítese antes de usar|información nutricional|prodotto in|fabbricato in|origine italia"
        "|conservare in luogo fresco e asciutto|agitare prima dell'uso|valori nutrizionali|geproduceerd in|gemaakt in"
        "|koel bewaren|koel en droog bewaren|schudden voor gebruik|conservar em local fresco|feito em|fabricado no"
        " brasil|indústria brasileira",
        "input|output|rated voltage|rated power|input voltage|output voltage|power supply ac|battery type|frequency",
        "gross weight|gross wt|gr wt|g w|gw|gross mass|tare weight|tare wt|bruttogewicht|leergewicht|poids brut"
        "|peso bruto|peso lordo|brutogewicht|毛重|皮重",
        "型号|货号|款号|产品名称|品名|品牌|产地|原产地|原产国|执行标准|产品标准号|产品标准|标准号|生产许可证|生产许可证编号|许可证编号|卫生许可证|食品生产许可证|贮存条件|储存条件|储存方法|保存方法"
        "|贮藏|食用方法|使用方法|用法用量|等级|质量等级|规格型号|中国制造|产品类别|品番|型番|原産国|保存方法|栄養成分|모델명|원산지|보관방법",
    ),
}

# Everyday words that stand before a number or code without being one of our keys' misreadings: they count as a key
# of `other` only at the start of a line and only with a colon or a number behind them.
WEAK_OTHER = (
    "model|mod|type|typ|tipo|size|größe|taille|talla|colour|color|farbe|couleur|item|art|article|artikel|ref|reference"
    "|référence|part|rev|version|ver|code|no|id|power|voltage|current|input|output|freq|class|grade|series|serving"
    "|energy|temp|storage|step|level|page|date code|unit|style|order|job|line|shift|machine|operator|time|price|total"
    "|sku|standard|norm|position|pos|gate|station|bin|carton|box|pallet|shipment|dest|from|to|width|height|length"
    "|gross|brutto|bruto|tare|tara"
)

# Real words that OCR damage must never turn into a key: `series` is not a misread `serie`, `hot` not `lot`.
NOT_KEYS = (
    "series|serve|serves|service|services|date|dates|data|note|notes|parts|party|charger|chargers|charged|change|large"
    "|volt|volts|not|hot|dot|got|pot|cot|low|lol|set|son|sun|sin|sea|see|six|net|new|now|nut|met|bet|let|wet|pet|the"
    "|may|max|min|mix|pro|bar|box|fat|far|car|can|fan|van|pan|tan|man|men|per|pen|ten|ben|her|fer|for|tor|nor|exo|ext"
    "|dim|dot|don|mod|mid|had|bad|dad|pad|mad|prof|food|prop|drop|crop|wood|mood|good|pool|port|part|past|post|host"
    "|cost|lost|most|must|best|test|rest|west|nest|text|next|plus|class|place|plate|late|latte|lotion|later|later"
    "|coffee|toffee|butter|better|matter|latch|match|watch|catch|patch|hatch|bath|beach|bench|reach|each|teach|baker"
    "|barked|packer|packet|packets|pocket|rocket|jacket|exit|expo|export|expert|extra|user|used|uses|sell|seller|fill"
    "|filled|full|fuel|bull|ball|bell|bill|build|guilt|quilt|weights|height|eight|light|right|night|volumes|columns"
    "|column|content|contend|context|constant|contact|contract|contrast|count|court|mount|country|county|amount"
    "|visit|visa|vista|call|cell|calm|mail|male|made|make|maker|mile|mild|wild|tell|tall|fair|fail|tail|sail|jail"
    "|fabric|factory|peso|pesto|presto|preso|nuts|nuss|salz|sals|salsa|serie|sorte|torte|forte|sort|los|las|lis|les"
    "|product|products|product de|produkt|produkte|cereal|cereals|serial|material|bacterial|aerial|rosted|toasted"
)
